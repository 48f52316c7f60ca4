import { create, createFileRegistry, setExtension } from "@bufbuild/protobuf";
import {
	FieldDescriptorProto_Label,
	FieldDescriptorProto_Type,
	FileDescriptorSetSchema,
	file_google_protobuf_descriptor,
	MessageOptionsSchema,
} from "@bufbuild/protobuf/wkt";
import { Scope, spec, TypeSpecSchema } from "@plinth/proto";
import { defineType, idOf, type ResourceType, resourceOf } from "@plinth/resource";
import type { Server } from "@plinth/server";

/** The type `commented.v1.Note`, with the field `text`. Both have the comment. */
export function noteType(comment: string | undefined): ResourceType {
	const options = create(MessageOptionsSchema);
	setExtension(options, spec, create(TypeSpecSchema, { scope: Scope.NAMESPACE }));
	const text = {
		...{ name: "text", number: 1, type: FieldDescriptorProto_Type.STRING },
		label: FieldDescriptorProto_Label.OPTIONAL,
	};
	const location = [
		[4, 0],
		[4, 0, 2, 0],
	].map((path) => ({
		...{ path, span: [0, 0, 1] },
		leadingComments: comment ?? "",
	}));
	const set = create(FileDescriptorSetSchema, {
		file: [
			file_google_protobuf_descriptor.proto,
			spec.file.proto,
			{
				...{ name: "commented/v1/note.proto", package: "commented.v1", syntax: "proto3" },
				dependency: [spec.file.proto.name],
				messageType: [{ name: "Note", options, field: [text] }],
				...(comment !== undefined && { sourceCodeInfo: { location } }),
			},
		],
	});
	const message = createFileRegistry(set).getMessage("commented.v1.Note");
	if (message === undefined) {
		throw new Error("commented.v1.Note is missing");
	}
	return defineType(message);
}

/** Declares a resource of that type. */
export async function declareNote(
	{ client }: Pick<Server, "client">,
	type: ResourceType,
	name: string,
): Promise<void> {
	const data = create(type.schema, { text: "written" });
	await client.write({ resource: resourceOf(type, { id: idOf(type, name), data }) });
}
