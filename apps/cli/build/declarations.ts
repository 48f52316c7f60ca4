import { readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { join } from "node:path";

/** The declarations of an entry. */
export interface Declarations {
	/** The paths of the files: the entry, and all that it imports within its package. */
	readonly files: readonly string[];
	/** The other packages that they import, by name. */
	readonly packages: readonly string[];
}

/** What the declarations of an entry, which the compiler has written, consist of. */
export function reachableDeclarations(entry: string): Declarations {
	const files = new Set([entry]);
	const packages = new Set<string>();
	// It grows while it is read.
	for (const file of files) {
		for (const specifier of importedBy(readFileSync(file, "utf8"))) {
			if (specifier.startsWith(".")) {
				files.add(join(file, "..", specifier.replace(/\.[jt]s$/, ".d.ts")));
			} else if (!isBuiltin(specifier)) {
				packages.add(specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/"));
			}
		}
	}
	return { files: [...files], packages: [...packages].sort() };
}

/** Statements begin in the first column; what is within a comment does not. */
function importedBy(declarations: string): readonly string[] {
	const imports =
		/^(?:import|export)\b[^;]*? from "(?<statement>[^"]+)"|\bimport\("(?<type>[^"]+)"\)/gm;
	return [...declarations.matchAll(imports)].flatMap(
		({ groups }) => groups?.statement ?? groups?.type ?? [],
	);
}
