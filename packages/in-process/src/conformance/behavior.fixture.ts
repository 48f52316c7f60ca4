import {
	type Client,
	Code,
	ConnectError,
	type ContextValues,
	type HandlerContext,
	type Interceptor,
	type ServiceImpl,
	type Transport,
} from "@connectrpc/connect";
import type { Clock } from "@plinth/runtime";
import type { AbsentService, ProbeService } from "../../testdata/src/gen/probe_pb.ts";

/** One thing that a caller can rely on, whatever the transport. */
export interface Behavior {
	/** Completes "the transport …". */
	readonly does: string;
	/** Runs a scenario and returns what its caller and its handler observed, as plain values. */
	play(connect: Connect): Promise<unknown>;
	/** The expected observations. */
	readonly outcome: unknown;
	/** The clients that it applies to, if not to both. */
	readonly clients?: "createClient" | "createInProcessClient";
	/** The expected observations over a socket, if they differ there, and the reason. */
	readonly deviation?: {
		readonly on: "every wire" | "gRPC" | "Connect";
		readonly outcome: unknown;
		readonly why: string;
	};
}

/** Sets up both sides of a connection over the transport under test. */
export type Connect = (setup: Setup) => Promise<Connection>;

export interface Setup {
	readonly handlers: Partial<ServiceImpl<typeof ProbeService>>;
	/** Interceptors of the caller's side, and of the handler's. */
	readonly caller?: Interceptor[];
	readonly server?: Interceptor[];
	readonly contextValues?: () => ContextValues;
	readonly requestGate?: (context: HandlerContext) => void | Promise<void>;
	readonly maxTimeoutMs?: number;
	readonly defaultTimeoutMs?: number;
	readonly shutdownSignal?: AbortSignal;
	/** The clock of deadlines, in-process. Over a socket, the library has only the real one. */
	readonly clock?: Clock;
}

export interface Connection {
	readonly client: Client<typeof ProbeService>;
	/** Of a service that the server does not have. */
	readonly absent: Client<typeof AbsentService>;
	readonly transport: Transport;
}

/** An error as its caller sees it. */
export async function errorOf(promise: Promise<unknown>): Promise<unknown> {
	try {
		await promise;
	} catch (error) {
		return seen(error);
	}
	return "no error";
}

/** Code and message of an error: `canceled: the message`. */
export function seen(error: unknown): string {
	return error instanceof ConnectError
		? `${Code[error.code]}: ${error.rawMessage}`
		: `not a ConnectError: ${String(error)}`;
}

/** The code of an error whose message says how it traveled. */
export function codeOf(error: unknown): string {
	return error instanceof ConnectError ? (Code[error.code] ?? "?") : "not a ConnectError";
}

/** The error that a promise rejects with, itself. */
export async function caught(promise: Promise<unknown>): Promise<ConnectError> {
	try {
		await promise;
	} catch (error) {
		return ConnectError.from(error);
	}
	throw new Error("expected a rejection");
}

/** The texts of a stream's messages, and the error that ended it, if one did. */
export async function textsOf(
	messages: AsyncIterable<{ readonly text: string }>,
): Promise<readonly string[]> {
	const texts: string[] = [];
	try {
		for await (const message of messages) {
			texts.push(message.text);
		}
	} catch (error) {
		texts.push(seen(error));
	}
	return texts;
}

/** Reads a stream to its end and ignores its messages. */
export async function drained(messages: AsyncIterable<unknown>): Promise<void> {
	for await (const _ of messages) {
		// Ignored.
	}
}

/** Resolves when the signal aborts, with its reason. */
export function abortOf(signal: AbortSignal): Promise<unknown> {
	return new Promise((resolve) => {
		if (signal.aborted) {
			resolve(signal.reason);
		}
		signal.addEventListener("abort", () => resolve(signal.reason), { once: true });
	});
}

/** Rejects with the signal's reason when it aborts: a handler that stops. */
export async function throwOnAbort(signal: AbortSignal): Promise<never> {
	throw await abortOf(signal);
}

/** An event that happens once, on the other side. */
export function happening<T = void>() {
	return Promise.withResolvers<T>();
}

/** A stream of messages with the given texts, then the end. */
export async function* texts(...values: string[]) {
	for (const text of values) {
		yield { text };
	}
}

/** Never settles. */
export function forever(): Promise<never> {
	return new Promise(() => {});
}

/** A unary handler that reports when it runs and why its signal aborts, and never returns. */
export async function connectHanging(connect: Connect, clock?: Clock) {
	const running = happening<HandlerContext>();
	const aborted = happening<unknown>();
	const connection = await connect({
		...(clock && { clock }),
		handlers: {
			unary: async (_, context) => {
				void abortOf(context.signal).then(aborted.resolve);
				running.resolve(context);
				return forever();
			},
		},
	});
	return { ...connection, running: running.promise, aborted: aborted.promise };
}
