import type { MessageInitShape } from "@bufbuild/protobuf";
import {
	type Code,
	ConnectError,
	type HandlerContext,
	type ServiceImpl,
} from "@connectrpc/connect";
import { sleep, systemClock } from "@plinth/runtime";
import type {
	EchoStatus,
	ResponseParameters,
	StreamingOutputCallResponseSchema,
	TestService,
} from "../../testdata/grpc-interop/gen/grpc/testing/test_pb.ts";

/** The service of gRPC's interoperability tests. `UnimplementedCall` is missing, as it has to be. */
export const interopService: Partial<ServiceImpl<typeof TestService>> = {
	emptyCall: () => ({}),

	unaryCall(request, context) {
		echoMetadata(context);
		throwStatus(request.responseStatus);
		return { payload: { body: new Uint8Array(request.responseSize) } };
	},

	streamingOutputCall: (request, context) => respondAll(request.responseParameters, context),

	async streamingInputCall(requests) {
		let aggregatedPayloadSize = 0;
		for await (const { payload } of requests) {
			aggregatedPayloadSize += payload?.body.length ?? 0;
		}
		return { aggregatedPayloadSize };
	},

	async *fullDuplexCall(requests, context) {
		echoMetadata(context);
		for await (const request of requests) {
			throwStatus(request.responseStatus);
			yield* respondAll(request.responseParameters, context);
		}
	},
};

async function* respondAll(
	parameters: readonly ResponseParameters[],
	{ signal }: HandlerContext,
): AsyncGenerator<MessageInitShape<typeof StreamingOutputCallResponseSchema>> {
	for (const { size, intervalUs } of parameters) {
		await sleep(systemClock, intervalUs / 1_000, signal);
		yield { payload: { body: new Uint8Array(size) } };
	}
}

/** Sends back what the tests of metadata send. */
function echoMetadata(context: HandlerContext): void {
	echo("x-grpc-test-echo-initial", context.requestHeader, context.responseHeader);
	echo("x-grpc-test-echo-trailing-bin", context.requestHeader, context.responseTrailer);
}

function echo(name: string, from: Headers, to: Headers): void {
	const value = from.get(name);
	if (value !== null) {
		to.set(name, value);
	}
}

function throwStatus(status: EchoStatus | undefined): void {
	if (status !== undefined && status.code !== 0) {
		// The tests send codes of gRPC only.
		const code: Code = status.code;
		throw new ConnectError(status.message, code);
	}
}
