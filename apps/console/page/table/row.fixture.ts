import { create, createRegistry, type DescFile, toBinary } from "@bufbuild/protobuf";
import { anyPack, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { type KnownType, KnownTypes } from "@plinth/documents";
import { type Resource, ResourceSchema, Scope } from "@plinth/proto";
import { NamespaceSchema } from "@plinth/proto/gen/plinth/tenancy/v1/tenancy_pb.js";
import { nameKey } from "@plinth/resource";

/** A type that every server has. */
export const namespaceType: KnownType = {
	type: { group: "tenancy", groupVersion: "v1", kind: "Namespace" },
	key: "tenancy.v1.Namespace",
	scope: Scope.PARTITION,
	schema: NamespaceSchema,
};

/** The type alone. */
export const knownTypes = new KnownTypes([namespaceType], createRegistry(NamespaceSchema));

/** A namespace. */
export function namespaceOf(name: string, description: string, version = "1"): Resource {
	return create(ResourceSchema, {
		id: { name, type: namespaceType.type, tenancy: { partition: "default", namespace: "" } },
		version,
		data: anyPack(NamespaceSchema, create(NamespaceSchema, { description })),
	});
}

/** The key of a namespace. */
export function keyOf(name: string): string {
	return nameKey({ name, type: namespaceType.type, tenancy: { partition: "default" } });
}

/** The response of a server that has this type alone. */
export const typesResponse = {
	types: [
		{
			type: namespaceType.type,
			scope: namespaceType.scope,
			messageName: NamespaceSchema.typeName,
		},
	],
	fileDescriptorSet: toBinary(
		FileDescriptorSetSchema,
		create(FileDescriptorSetSchema, {
			file: [...filesBelow(NamespaceSchema.file)].map(({ proto }) => proto),
		}),
	),
};

/** A file and all that it imports, each after what it imports. */
function filesBelow(file: DescFile): ReadonlySet<DescFile> {
	const files = new Set<DescFile>();
	for (const imported of file.dependencies) {
		for (const each of filesBelow(imported)) {
			files.add(each);
		}
	}
	return files.add(file);
}
