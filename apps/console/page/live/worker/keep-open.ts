import { Code, ConnectError } from "@connectrpc/connect";
import { Backoff, type Clock, type Random } from "@plinth/runtime";
import type { Attempts } from "./attempts.ts";

/** A stream of the server that is opened again when it breaks. */
export interface KeptStream<Message> {
	readonly open: (signal: AbortSignal) => AsyncIterable<Message>;
	readonly onMessage: (message: Message) => void;
	/** The stream broke, and is opened again later. */
	readonly onLost: (error: ConnectError) => void;
	/** The server refuses the stream. It is not opened again. */
	readonly onRefused: (error: ConnectError) => void;
}

/** What a kept stream depends on. */
export interface KeepOpenContext {
	readonly clock: Clock;
	/** Spreads the attempts of several pages. */
	readonly random: Random;
	readonly attempts: Attempts;
}

const reconnect = { baseMs: 500, maxMs: 10_000 };

/** Keeps a stream open until the signal aborts, or the server refuses it. Never rejects. */
export async function keepOpen<Message>(
	stream: KeptStream<Message>,
	{ clock, random, attempts }: KeepOpenContext,
	signal: AbortSignal,
): Promise<void> {
	const backoff = new Backoff({ ...reconnect, clock, random });
	while (!signal.aborted) {
		let hasReceived = false;
		try {
			for await (const message of stream.open(signal)) {
				hasReceived = true;
				backoff.reset();
				stream.onMessage(message);
			}
			throw new ConnectError("the server ended the stream", Code.Unavailable);
		} catch (failure) {
			if (signal.aborted) {
				return;
			}
			const error = ConnectError.from(failure);
			if (!hasReceived && isRefusal(error)) {
				stream.onRefused(error);
				return;
			}
			stream.onLost(error);
			await attempts.wait(backoff, signal).catch(() => {});
		}
	}
}

/** Whether the server would refuse the same stream again. A stream that was open may end so that its client signs in again. */
function isRefusal({ code }: ConnectError): boolean {
	return [
		...[Code.Unauthenticated, Code.PermissionDenied, Code.InvalidArgument],
		...[Code.NotFound, Code.Unimplemented, Code.FailedPrecondition],
	].includes(code);
}
