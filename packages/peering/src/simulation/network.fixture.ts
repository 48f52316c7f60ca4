import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import type { Random } from "@plinth/runtime";
import type { SeededRuntime } from "@plinth/runtime/testing";

/** What a network does to the calls between two clusters, whose streams have such requests and responses. */
export interface NetworkOptions<Request, Response> {
	readonly runtime: SeededRuntime;
	readonly random: Random;
	/** Whether it breaks now. */
	readonly isFaulty: () => boolean;
	/** Sees each message that leaves the called cluster. */
	readonly onSent: (message: Response) => void;
	/** Changes a request for a stream: a planted fault. */
	readonly changeRequest?: ((request: Request) => Promise<void>) | undefined;
}

/** A transport over a network that loses requests and responses, and breaks streams. */
export function faultyTransport<Request, Response>(
	inner: () => Transport,
	{ runtime, random, isFaulty, onSent, changeRequest }: NetworkOptions<Request, Response>,
): Transport {
	const lost = () => new ConnectError("the network has lost it", Code.Unavailable);
	const mayFail = async (share: number) => {
		while (random.next() < 0.3) {
			await runtime.scheduler.pause();
		}
		if (isFaulty() && random.next() < share) {
			throw lost();
		}
	};
	return {
		async unary(...call) {
			await mayFail(0.1);
			const response = await inner().unary(...call);
			await mayFail(0.1);
			return response;
		},
		async stream(method, signal, timeoutMs, header, input, contextValues) {
			await mayFail(0.1);
			const changed = (async function* () {
				for await (const request of input) {
					await changeRequest?.(request as unknown as Request);
					yield request;
				}
			})();
			const response = await inner().stream(
				method,
				signal,
				timeoutMs,
				header,
				changed,
				contextValues,
			);
			const messages = (async function* () {
				for await (const message of response.message) {
					onSent(message as unknown as Response);
					await mayFail(0.03);
					yield message;
				}
			})();
			return { ...response, message: messages } as typeof response;
		},
	};
}
