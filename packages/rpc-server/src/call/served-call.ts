import type { Message } from "@bufbuild/protobuf";
import type { ConnectError, Interceptor } from "@connectrpc/connect";
import type { Carrier } from "../carrier.ts";
import type { CallContext } from "../context/call-context.ts";
import type { Codec } from "../messages/codec.ts";
import type { ObservedCall } from "../observers.ts";

/** A call whose message has arrived, as seen by the function that serves it. */
export interface ServedCall {
	readonly context: CallContext;
	readonly codec: Codec;
	readonly carrier: Pick<Carrier, "write">;
	readonly interceptors: readonly Interceptor[];
	readonly observed: ObservedCall | undefined;
	/** Whether nothing more can be sent: the response has ended, or the client is gone. */
	readonly isOver: boolean;
	/** Called when the client is gone. */
	onClosed: ((reason: ConnectError) => void) | undefined;
	/** Sends the head of a stream, unless it was sent already. */
	sendHead(): void;
	/** The implementation of a unary method has returned. */
	succeed(output: Message): void;
	/** A stream has ended without an error. `pending` contains the envelopes that were not written yet. */
	endStream(pending: Uint8Array | undefined): void;
	/** The implementation has thrown. */
	failed(thrown: unknown, pending?: Uint8Array): void;
}

/** Serves the message of a call; ends with `succeed`, `endStream` or `failed`. */
export type Serve = (call: ServedCall, message: Message) => void;
