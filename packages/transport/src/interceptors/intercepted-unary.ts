import {
	create,
	type DescMessage,
	type DescMethodUnary,
	type MessageInitShape,
	type MessageShape,
} from "@bufbuild/protobuf";
import type { ContextValues, UnaryRequest, UnaryResponse } from "@connectrpc/connect";
import type { CallRequest } from "../call-request.ts";
import { CallerScope } from "./caller-scope.ts";
import { changedKind, expectMessage, forwardedRequest, requestOf } from "./forwarded-request.ts";
import { chainInterceptors } from "./interceptor-chain.ts";
import type { TransportSettings } from "./transport-settings.ts";

/** Makes the call that the interceptors wrap. */
export type CallUnary<I extends DescMessage, O extends DescMessage> = (
	request: CallRequest,
	message: MessageShape<I>,
) => Promise<UnaryResponse<I, O>>;

/** Runs a unary call, wrapped in the interceptors of the caller's side. */
export async function interceptUnary<I extends DescMessage, O extends DescMessage>(
	settings: TransportSettings,
	method: DescMethodUnary<I, O>,
	callRequest: CallRequest,
	contextValues: ContextValues | undefined,
	input: MessageInitShape<I>,
	callUnary: CallUnary<I, O>,
): Promise<UnaryResponse<I, O>> {
	const scope = new CallerScope(settings.clock, callRequest);
	try {
		const request: UnaryRequest<I, O> = {
			...requestOf(settings, method, callRequest, contextValues),
			get signal() {
				return scope.signal;
			},
			stream: false,
			method,
			message: create(method.input, input),
		};
		const call = chainInterceptors(settings.interceptors, async (forwarded) => {
			if (forwarded.stream) {
				throw changedKind(method);
			}
			const response = await callUnary(
				forwardedRequest(forwarded, request, callRequest, scope),
				expectMessage(forwarded.message, method.input),
			);
			return {
				stream: false,
				service: method.parent,
				method,
				message: response.message,
				header: response.header,
				trailer: response.trailer,
			};
		});
		const response = await call(request);
		if (response.stream) {
			throw changedKind(method);
		}
		scope.end();
		const { service, header, trailer, message } = response;
		return {
			stream: false,
			service,
			method,
			header,
			trailer,
			message: expectMessage(message, method.output),
		};
	} catch (thrown) {
		throw scope.fail(thrown);
	}
}
