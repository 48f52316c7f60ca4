import { createRegistry, type DescFile, type Registry } from "@bufbuild/protobuf";
import type { ResourceType } from "@plinth/resource";

/** The files of the types and all that they import: their messages, and the rules that they predefine. */
export function rulesRegistry(types: readonly Pick<ResourceType, "schema">[]): Registry {
	const files = new Set<DescFile>();
	for (const { schema } of types) {
		filesOf(schema.file, files);
	}
	return createRegistry(...files);
}

/** A file and all that it imports, each after what it imports. */
export function filesOf(file: DescFile, seen = new Set<DescFile>()): Set<DescFile> {
	for (const dependency of file.dependencies) {
		if (!seen.has(dependency)) {
			filesOf(dependency, seen);
		}
	}
	return seen.add(file);
}
