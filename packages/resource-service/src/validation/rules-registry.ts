import { createRegistry, type DescFile, type Registry } from "@bufbuild/protobuf";
import type { ResourceType } from "@plinth/resource";

/** A registry of the types' files and all their imports: their messages and predefined rules. */
export function rulesRegistry(types: readonly Pick<ResourceType, "schema">[]): Registry {
	const files = new Set<DescFile>();
	for (const { schema } of types) {
		filesOf(schema.file, files);
	}
	return createRegistry(...files);
}

/** A file and all its imports, in dependency order. */
export function filesOf(file: DescFile, seen = new Set<DescFile>()): Set<DescFile> {
	for (const dependency of file.dependencies) {
		if (!seen.has(dependency)) {
			filesOf(dependency, seen);
		}
	}
	return seen.add(file);
}
