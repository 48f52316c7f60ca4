import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseSync, Visitor } from "oxc-parser";
import { ScaffoldError } from "../scaffold-error.ts";
import type { KnownType } from "./project-types.ts";

/** The folder of the code that protoc-gen-es generates. */
const generatedFolder = "src/gen";

/** Where a project exports a type. */
export interface DefinedType {
	/** From the root, with slashes. */
	readonly file: string;
	/** The name of the export. */
	readonly name: string;
	/** The generated descriptor that it is defined by, as in `ZoneSchema`. */
	readonly schema: string;
	/** Where its file imports that from; empty if it does not. */
	readonly schemaFrom: string;
}

/** All types that files of a project export: `export const Zone = defineType(ZoneSchema)`. */
export async function readDefinedTypes(root: string): Promise<readonly DefinedType[]> {
	const found: DefinedType[] = [];
	const files = await Array.fromAsync(glob("src/**/*.ts", { cwd: root }));
	for (const file of files.map((each) => each.replaceAll("\\", "/")).sort()) {
		if (file.startsWith(`${generatedFolder}/`) || file.endsWith(".test.ts")) {
			continue;
		}
		const source = await readFile(join(root, file), "utf8");
		if (source.includes("defineType(")) {
			found.push(...typesDefinedIn(file, source));
		}
	}
	return found;
}

/**
 * The export of a type of the project.
 *
 * @throws ScaffoldError if there is none.
 */
export function definitionOf(type: KnownType, defined: readonly DefinedType[]): DefinedType {
	const schema = `${type.message.name}Schema`;
	const candidates = defined.filter((each) => each.schema === schema);
	const generated = `/${type.message.file.name}_pb`;
	const found =
		candidates.find(({ schemaFrom }) => schemaFrom.includes(generated)) ?? candidates[0];
	if (found === undefined) {
		throw new ScaffoldError(
			`no file below src exports the type ${type.key}: add one with export const ${type.kind} = defineType(${schema})`,
		);
	}
	return found;
}

function typesDefinedIn(file: string, source: string): readonly DefinedType[] {
	const found: DefinedType[] = [];
	const { program, module } = parseSync(file, source);
	const importOf = new Map(
		module.staticImports.flatMap(({ entries, moduleRequest }) =>
			entries.map(({ localName }) => [localName.value, moduleRequest.value]),
		),
	);
	new Visitor({
		ExportNamedDeclaration: ({ declaration }) => {
			const declarators =
				declaration?.type === "VariableDeclaration" ? declaration.declarations : [];
			for (const { id, init } of declarators) {
				const [schema] = init?.type === "CallExpression" ? init.arguments : [];
				if (
					id.type === "Identifier" &&
					init?.type === "CallExpression" &&
					init.callee.type === "Identifier" &&
					init.callee.name === "defineType" &&
					schema?.type === "Identifier"
				) {
					const schemaFrom = importOf.get(schema.name) ?? "";
					found.push({ ...{ file, schemaFrom }, name: id.name, schema: schema.name });
				}
			}
		},
	}).visit(program);
	return found;
}
