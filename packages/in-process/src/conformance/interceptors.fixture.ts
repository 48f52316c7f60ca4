import { create, type Message } from "@bufbuild/protobuf";
import { createContextKey, type Interceptor } from "@connectrpc/connect";
import { PingSchema, PongSchema } from "../../testdata/src/gen/probe_pb.ts";

export const user = createContextKey("nobody");

/** Records when it is entered and left. */
export function tracing(name: string, trace: string[]): Interceptor {
	return (next) => async (request) => {
		trace.push(`${name} in`);
		try {
			return await next(request);
		} finally {
			trace.push(`${name} out`);
		}
	};
}

export function textIn(message: Message): string {
	return "text" in message && typeof message.text === "string" ? message.text : "";
}

/** Marks every message that passes through it, requests and responses. */
export function marking(mark: string): Interceptor {
	async function* pings(messages: AsyncIterable<Message>) {
		for await (const message of messages) {
			yield create(PingSchema, { text: `${textIn(message)}${mark}` });
		}
	}
	async function* pongs(messages: AsyncIterable<Message>) {
		for await (const message of messages) {
			yield create(PongSchema, { text: `${textIn(message)}${mark}` });
		}
	}
	return (next) => async (request) => {
		const response = request.stream
			? await next({ ...request, message: pings(request.message) })
			: await next({
					...request,
					message: create(PingSchema, { text: `${textIn(request.message)}${mark}` }),
				});
		return response.stream
			? { ...response, message: pongs(response.message) }
			: {
					...response,
					message: create(PongSchema, { text: `${textIn(response.message)}${mark}` }),
				};
	};
}

/** Throws instead of making a call. */
export const throwing =
	(error: unknown): Interceptor =>
	() =>
	async () => {
		throw error;
	};
