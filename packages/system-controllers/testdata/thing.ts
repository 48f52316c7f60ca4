import { clone, createFileRegistry } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { defineType, type ResourceType } from "@plinth/resource";
import { ThingSchema } from "./gen/acme/thing/v1/thing_pb.ts";

export { ThingSchema };

/** A type without hooks. */
export const Thing = defineType(ThingSchema);

/** A type like `Thing`, of another kind. */
export function thingType(kind: string): ResourceType {
	const { proto, dependencies } = ThingSchema.file;
	const file = clone(FileDescriptorProtoSchema, proto);
	file.name = `${kind}.proto`;
	for (const message of file.messageType) {
		message.name = kind;
	}
	const registry = createFileRegistry(file, (name) =>
		dependencies.find((dependency) => dependency.proto.name === name),
	);
	const schema = registry.getMessage(`${proto.package}.${kind}`);
	if (schema === undefined) {
		throw new Error(`no message ${kind}`);
	}
	return defineType(schema);
}
