import { create, createFileRegistry, setExtension } from "@bufbuild/protobuf";
import {
	DescriptorProtoSchema,
	FileDescriptorProtoSchema,
	MessageOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { Scope, spec } from "@plinth/proto";
import {
	file_plinth_resource_v1_annotations,
	TypeSpecSchema,
} from "@plinth/proto/gen/plinth/resource/v1/annotations_pb.js";
import { defineType, type ResourceType } from "@plinth/resource";

const scopes = {
	cluster: Scope.CLUSTER,
	partition: Scope.PARTITION,
	namespace: Scope.NAMESPACE,
} as const;

/**
 * Creates a type for resources whose module is lost, so that they can be deleted: its message has no fields, and
 * it has no hooks.
 *
 * @param key the type as statuses and logs name it: `catalog.v1.Service`.
 * @param scope the scope that the type had.
 * @param messageName the full name of its message, if it differs from the key. Needed only to decode or write
 *   resources of the type.
 * @throws Error if the key does not have the form `group.v1.Kind`.
 */
export function standInType(
	key: string,
	scope: keyof typeof scopes,
	messageName = key,
): ResourceType {
	const [group, groupVersion, kind, ...rest] = key.split(".");
	if (!group || !groupVersion || !kind || rest.length > 0) {
		throw new Error(
			`a stand-in needs the key of a type, such as catalog.v1.Service, got: "${key}"`,
		);
	}
	const options = create(MessageOptionsSchema);
	const names = { group, groupVersion, kind };
	setExtension(options, spec, create(TypeSpecSchema, { ...names, scope: scopes[scope] }));
	const end = messageName.lastIndexOf(".");
	const file = create(FileDescriptorProtoSchema, {
		name: `stand-in/${messageName}.proto`,
		package: messageName.slice(0, Math.max(end, 0)),
		syntax: "proto3",
		dependency: [file_plinth_resource_v1_annotations.proto.name],
		messageType: [create(DescriptorProtoSchema, { name: messageName.slice(end + 1), options })],
	});
	const schema = createFileRegistry(file, (name) =>
		name === file_plinth_resource_v1_annotations.proto.name
			? file_plinth_resource_v1_annotations
			: undefined,
	).getMessage(messageName);
	if (schema === undefined) {
		throw new Error(`a stand-in needs the name of a message, got: "${messageName}"`);
	}
	return defineType(schema);
}
