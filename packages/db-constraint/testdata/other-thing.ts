import { createFileRegistry, type DescMessage, fromBinary, toBinary } from "@bufbuild/protobuf";
import { type FileDescriptorProto, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { defineType } from "@plinth/resource";
import { ThingSchema } from "./types.ts";

/** The type Thing, as another version of the code may declare it. */
export function otherThing(change: (file: FileDescriptorProto) => void) {
	return otherType(ThingSchema, change);
}

/** A type as another version of the code may declare it. */
export function otherType(before: DescMessage, change: (file: FileDescriptorProto) => void) {
	const { proto, dependencies } = before.file;
	const copy = fromBinary(FileDescriptorProtoSchema, toBinary(FileDescriptorProtoSchema, proto));
	change(copy);
	const registry = createFileRegistry(copy, (name) =>
		dependencies.find((file) => file.proto.name === name),
	);
	const schema = registry.getMessage(before.typeName);
	if (schema === undefined) {
		throw new Error(`the copy has no ${before.typeName}`);
	}
	return defineType(schema);
}

/** The type Thing with fields, by index, that reference another type, whose name has the same length. */
export function thingReferencing(names: ReadonlyMap<number, string>) {
	return otherThing((file) => {
		for (const [at, name] of names) {
			const options = file.messageType[0]?.field[at]?.options;
			const [reference] = options?.$unknown ?? [];
			if (options !== undefined && reference !== undefined) {
				const text = new TextDecoder("latin1").decode(reference.data);
				const data = Uint8Array.from(text.replace("alpha.v1.Thing", name), (c) => c.charCodeAt(0));
				options.$unknown = [{ ...reference, data }];
			}
		}
	});
}
