import { glob, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { parseAllDocuments } from "yaml";

/** The folder of a project's resources to try it with. */
export const resourceFolder = "resources";

/** The name of a generated resource, and of the targets of its references that no file declares. */
export const exampleName = "example";

/** A resource that a file of the project declares. */
export interface ExampleResource {
	/** The full name of its type. */
	readonly type: string;
	readonly name: string;
	/** Empty if it is the default one. */
	readonly tenancy: JsonObject;
	readonly data: JsonObject;
}

/** The resources in the YAML files of a project, by file and position. Malformed ones are skipped. */
export async function readExamples(root: string): Promise<readonly ExampleResource[]> {
	const folder = join(root, resourceFolder);
	const files = (await Array.fromAsync(glob("**/*.{yaml,yml}", { cwd: folder }))).sort();
	const found: ExampleResource[] = [];
	for (const file of files) {
		for (const document of parseAllDocuments(await readFile(join(folder, file), "utf8"))) {
			const value: unknown = document.errors.length === 0 ? document.toJS() : undefined;
			if (isObject(value) && typeof value.type === "string" && typeof value.name === "string") {
				const { type, name, tenancy, data } = value;
				found.push({
					...{ type, name },
					tenancy: isObject(tenancy) ? tenancy : {},
					data: isObject(data) ? data : {},
				});
			}
		}
	}
	return found;
}

function isObject(value: unknown): value is JsonObject {
	return typeof value === "object" && value !== null && !Array.isArray(value);
}
