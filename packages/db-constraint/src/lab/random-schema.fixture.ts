import { create, createFileRegistry, type DescMessage, setExtension } from "@bufbuild/protobuf";
import {
	DescriptorProtoSchema,
	FieldDescriptorProto_Label,
	FieldDescriptorProto_Type,
	FieldDescriptorProtoSchema,
	FieldOptionsSchema,
	FileDescriptorProtoSchema,
	MessageOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { ReferenceSchema, Scope, spec, TypeSpecSchema } from "@plinth/proto";
import {
	type OnDelete,
	reference,
	SchemaReferenceSchema,
} from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { defineType, type ResourceType } from "@plinth/resource";

/** A field that references resources of a type, by its position among all types. */
export interface DrawnField {
	readonly target: number;
	readonly rule: OnDelete;
	readonly isList: boolean;
}

/** The fields of each type. */
export type DrawnSchema = readonly (readonly DrawnField[])[];

/** The types of a schema: messages `demo.v1.T0`, `demo.v1.T1`, …, with fields `f0`, `f1`, …. */
export function typesOf(schema: DrawnSchema): readonly ResourceType<DescMessage>[] {
	const messageType = schema.map((fields, at) =>
		create(DescriptorProtoSchema, {
			name: `T${at}`,
			options: namespaced(),
			field: fields.map((field, number) => fieldOf(field, number)),
		}),
	);
	const file = create(FileDescriptorProtoSchema, {
		name: "drawn/demo/v1/drawn.proto",
		package: "drawn.demo.v1",
		syntax: "proto3",
		dependency: [ReferenceSchema.file.proto.name],
		messageType,
	});
	const registry = createFileRegistry(file, () => ReferenceSchema.file);
	return schema.map((_, at) => {
		const message = registry.getMessage(`drawn.demo.v1.T${at}`);
		if (message === undefined) {
			throw new Error(`the type T${at} was not created`);
		}
		return defineType(message);
	});
}

function namespaced() {
	const options = create(MessageOptionsSchema);
	setExtension(options, spec, create(TypeSpecSchema, { scope: Scope.NAMESPACE }));
	return options;
}

function fieldOf({ target, rule, isList }: DrawnField, at: number) {
	const options = create(FieldOptionsSchema);
	const type = `demo.v1.T${target}`;
	setExtension(options, reference, create(SchemaReferenceSchema, { type, onDelete: rule }));
	return create(FieldDescriptorProtoSchema, {
		name: `f${at}`,
		jsonName: `f${at}`,
		number: at + 1,
		type: FieldDescriptorProto_Type.MESSAGE,
		typeName: `.${ReferenceSchema.typeName}`,
		label: isList ? FieldDescriptorProto_Label.REPEATED : FieldDescriptorProto_Label.OPTIONAL,
		options,
	});
}
