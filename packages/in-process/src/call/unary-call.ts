import {
	create,
	type DescMessage,
	type DescMethodUnary,
	isMessage,
	type MessageInitShape,
} from "@bufbuild/protobuf";
import { Code, ConnectError, type UnaryResponse } from "@connectrpc/connect";
import { type CallRequest, CallResponse, copyOfHeaders } from "@plinth/transport";
import { Call, type CallEnds, type Environment } from "./call.ts";
import { respondUnary } from "./handlers.ts";
import { asWireError } from "./wire-errors.ts";

/** Sends one message to the handler and returns its response. */
export function callUnary<I extends DescMessage, O extends DescMessage>(
	environment: Environment,
	method: DescMethodUnary<I, O>,
	request: CallRequest,
	input: MessageInitShape<I>,
): Promise<UnaryResponse<I, O>> {
	return new Promise((resolve, reject) => {
		const message = create(method.input, input);
		const route = environment.routes.find(method);
		const { hops } = environment;
		const ends: CallEnds = { failCaller: reject, releaseHandler: () => {} };
		const call = new Call(environment, route, request, ends);

		const serve = async (): Promise<void> => {
			const { context } = call;
			try {
				const output = await respondUnary(route, context, message, request.timeoutMs);
				if (!isMessage(output, method.output)) {
					throw new ConnectError(
						`expected ${method.output.typeName}, not ${output.$typeName}`,
						Code.Internal,
					);
				}
				context.abort();
				const header = copyOfHeaders(context.touchedHeader);
				const trailer = copyOfHeaders(context.touchedTrailer);
				const response = new CallResponse(false as const, method, output, header, trailer);
				hops.answer(() => call.close() && resolve(response));
			} catch (thrown) {
				context.abort(thrown);
				const error = asWireError(thrown, context);
				hops.answer(() => call.close() && reject(error));
			}
		};
		hops.call(() => {
			if (call.isOpen) {
				void serve();
			} else {
				hops.drop();
			}
		});
	});
}
