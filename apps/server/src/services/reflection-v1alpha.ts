import {
	create,
	type DescMessage,
	fromBinary,
	type MessageInitShape,
	type MessageShape,
	toBinary,
} from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import {
	type ServerReflection,
	ServerReflectionRequestSchema,
	ServerReflectionResponseSchema,
} from "../gen/grpc/reflection/v1/reflection_pb.ts";
import {
	ServerReflectionRequestSchema as OldRequestSchema,
	ServerReflectionResponseSchema as OldResponseSchema,
	type ServerReflection as OldServerReflection,
} from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";

/** The reflection service under its older name, for clients that support no other. */
export function createReflectionV1Alpha(
	current: ServiceImpl<typeof ServerReflection>,
): ServiceImpl<typeof OldServerReflection> {
	return {
		async *serverReflectionInfo(requests, context) {
			const converted = eachAs(OldRequestSchema, ServerReflectionRequestSchema, requests);
			const responses = current.serverReflectionInfo(converted, context);
			yield* eachAs(ServerReflectionResponseSchema, OldResponseSchema, responses);
		},
	};
}

/** Converts messages to another type, which is the same on the wire. */
async function* eachAs<From extends DescMessage, To extends DescMessage>(
	from: From,
	to: To,
	messages: AsyncIterable<MessageInitShape<From>>,
): AsyncGenerator<MessageShape<To>> {
	for await (const message of messages) {
		yield fromBinary(to, toBinary(from, create(from, message)));
	}
}
