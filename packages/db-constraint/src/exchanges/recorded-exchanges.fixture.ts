import { create, type DescMessage, type Message, toBinary } from "@bufbuild/protobuf";
import type { TransportDecorator } from "../lab/lab.fixture.ts";

/** What some release has sent, and received, by one method. */
export interface RecordedExchange {
	readonly method: string;
	/** The binary form in Base64, as are the responses: one, or those of a stream. */
	readonly request: string;
	readonly responses: readonly string[];
}

/** The exchanges of a release that speaks a version of the protocol. */
export interface RecordedExchanges {
	/** The uids in the messages, by name. */
	readonly uids: Readonly<Record<string, string>>;
	readonly exchanges: readonly RecordedExchange[];
}

/** Records what deployments send each other, without what fails. */
export function recording(exchanges: RecordedExchange[]): TransportDecorator {
	return (transport) => ({
		async unary(method, signal, timeoutMs, header, input, values) {
			const response = await transport.unary(method, signal, timeoutMs, header, input, values);
			const request = encode(method.input, create(method.input, input));
			const responses = [encode(method.output, response.message)];
			exchanges.push({ method: method.name, request, responses });
			return response;
		},
		async stream(method, signal, timeoutMs, header, input, values) {
			const sent: Message[] = [];
			const requests = (async function* () {
				for await (const each of input) {
					sent.push(create(method.input, each));
					yield each;
				}
			})();
			const response = await transport.stream(method, signal, timeoutMs, header, requests, values);
			const responses: string[] = [];
			const messages = (async function* () {
				for await (const message of response.message) {
					if (responses.length === 0) {
						const request = sent[0] === undefined ? "" : encode(method.input, sent[0]);
						exchanges.push({ method: method.name, request, responses });
					}
					responses.push(encode(method.output, message));
					yield message;
				}
			})();
			return { ...response, message: messages };
		},
	});
}

function encode(type: DescMessage, message: Message): string {
	return Buffer.from(toBinary(type, message)).toString("base64");
}
