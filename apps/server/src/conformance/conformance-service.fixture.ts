import { create } from "@bufbuild/protobuf";
import { type Any, anyPack } from "@bufbuild/protobuf/wkt";
import { ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import { sleep, systemClock } from "@plinth/runtime";
import {
	BidiStreamRequestSchema,
	ClientStreamRequestSchema,
	type ConformancePayload_RequestInfo,
	ConformancePayload_RequestInfoSchema,
	type ConformanceService,
	type Error as ErrorDefinition,
	type Header,
	IdempotentUnaryRequestSchema,
	ServerStreamRequestSchema,
	type StreamResponseDefinition,
	UnaryRequestSchema,
	type UnaryResponseDefinition,
} from "../../testdata/conformance/gen/connectrpc/conformance/v1/service_pb.ts";

/**
 * The service of the conformance runner: each request defines its response, which also echoes the request as the
 * implementation received it. The method `Unimplemented` is left out, as the runner requires.
 */
export const conformanceService: Partial<ServiceImpl<typeof ConformanceService>> = {
	unary: (request, context) =>
		respond(request.responseDefinition, [anyPack(UnaryRequestSchema, request)], context),

	idempotentUnary: (request, context) =>
		respond(request.responseDefinition, [anyPack(IdempotentUnaryRequestSchema, request)], context),

	async clientStream(stream, context) {
		const requests = await Array.fromAsync(stream);
		return respond(
			requests[0]?.responseDefinition,
			requests.map((request) => anyPack(ClientStreamRequestSchema, request)),
			context,
		);
	},

	async *serverStream(request, context) {
		const { responseDefinition: definition } = request;
		if (definition !== undefined) {
			setMetadata(definition, context);
			yield* respondAll(definition, [anyPack(ServerStreamRequestSchema, request)], context);
		}
	},

	async *bidiStream(stream, context) {
		let requests: Any[] = [];
		let sent = 0;
		let definition: StreamResponseDefinition | undefined;
		let isFullDuplex: boolean | undefined;
		for await (const request of stream) {
			if (isFullDuplex === undefined) {
				isFullDuplex = request.fullDuplex;
				definition = request.responseDefinition;
				if (definition !== undefined) {
					setMetadata(definition, context);
				}
			}
			requests.push(anyPack(BidiStreamRequestSchema, request));
			if (isFullDuplex) {
				const data = definition?.responseData[sent];
				if (definition === undefined || data === undefined) {
					break;
				}
				const requestInfo = sent === 0 ? requestInfoOf(requests, context) : { requests };
				await sleep(systemClock, definition.responseDelayMs, context.signal);
				yield { payload: { data, requestInfo } };
				requests = [];
				sent++;
			}
		}
		if (definition !== undefined) {
			yield* respondAll(definition, requests, context, sent);
		}
	},
};

/** The response of a method that has only one. */
async function respond(
	definition: UnaryResponseDefinition | undefined,
	requests: readonly Any[],
	context: HandlerContext,
) {
	const requestInfo = requestInfoOf(requests, context);
	if (definition === undefined) {
		return { payload: { requestInfo } };
	}
	setMetadata(definition, context);
	await sleep(systemClock, definition.responseDelayMs, context.signal);
	const { response } = definition;
	if (response.case === "error") {
		throw errorOf(response.value, requestInfo);
	}
	return { payload: { requestInfo, ...(response.case && { data: response.value }) } };
}

/** The responses of a stream from `sent` on, the very first of which echoes the request, and its error, if any. */
async function* respondAll(
	definition: StreamResponseDefinition,
	requests: readonly Any[],
	context: HandlerContext,
	sent = 0,
) {
	const { responseData, responseDelayMs, error } = definition;
	for (const [index, data] of responseData.entries()) {
		if (index >= sent) {
			await sleep(systemClock, responseDelayMs, context.signal);
			yield {
				payload: { data, ...(index === 0 && { requestInfo: requestInfoOf(requests, context) }) },
			};
		}
	}
	if (error !== undefined) {
		const isFirst = responseData.length === 0;
		throw errorOf(error, isFirst ? requestInfoOf(requests, context) : undefined);
	}
}

function requestInfoOf(requests: readonly Any[], context: HandlerContext) {
	const timeoutMs = context.timeoutMs();
	return create(ConformancePayload_RequestInfoSchema, {
		requests: [...requests],
		requestHeaders: headersFrom(context.requestHeader),
		...(timeoutMs !== undefined && { timeoutMs: BigInt(Math.floor(timeoutMs)) }),
		...(context.requestMethod === "GET" && {
			connectGetInfo: { queryParams: headersFrom(new URL(context.url).searchParams) },
		}),
	});
}

function headersFrom(fields: Iterable<readonly [string, string]>) {
	return [...fields].map(([name, value]) => ({ name, value: [value] }));
}

function setMetadata(
	definition: UnaryResponseDefinition | StreamResponseDefinition,
	{ responseHeader, responseTrailer }: HandlerContext,
): void {
	appendTo(responseHeader, definition.responseHeaders);
	appendTo(responseTrailer, definition.responseTrailers);
}

function appendTo(headers: Headers, fields: readonly Header[]): void {
	for (const { name, value: values } of fields) {
		for (const value of values) {
			headers.append(name, value);
		}
	}
}

/** The error of a definition, with the request if no response was sent. */
function errorOf(
	{ code, message, details }: ErrorDefinition,
	requestInfo: ConformancePayload_RequestInfo | undefined,
): ConnectError {
	// Both enumerations have the numbers of gRPC.
	const number: number = code;
	const error = new ConnectError(message ?? "", number);
	const all =
		requestInfo === undefined
			? details
			: [...details, anyPack(ConformancePayload_RequestInfoSchema, requestInfo)];
	error.details = all.map(({ typeUrl, value }) => ({
		type: typeUrl.slice(typeUrl.lastIndexOf("/") + 1),
		value,
	}));
	return error;
}
