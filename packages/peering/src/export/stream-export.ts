import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	HeartbeatSchema,
	type StreamRequest,
	type StreamResponse,
	StreamResponseSchema,
	StreamStartSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { familyKey, gvkKey, sameType } from "@plinth/resource";
import { type Runtime, scheduleAfterInput, sleep } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { peeringLimits } from "../limits.ts";
import type { SendWindow } from "./send-window.ts";
import type { TypeExport } from "./type-export.ts";
import { type TypeMessage, typeMessages } from "./type-messages.ts";

/** A stream to a peer, or to another region. */
export interface StreamExportOptions {
	readonly backend: Pick<StorageBackend, "watchList" | "catchUp">;
	readonly runtime: Runtime;
	/** What may be streamed. */
	readonly exports: readonly TypeExport[];
	/** How many positions a request may have. */
	readonly maxTypes: number;
	readonly request: Pick<StreamRequest, "positions">;
	/** Resolves to what has changed, when nothing may be streamed any longer. */
	readonly changed: (signal: AbortSignal) => Promise<string>;
	readonly streamId: string;
	readonly window: SendWindow;
	readonly signal: AbortSignal;
}

/** Messages of all types that wait to be sent. A type that has more waits. */
const maxWaiting = 64;

/**
 * Streams an export: the messages of its types, each in order, one after the other as they come, while the window has
 * room. It ends with Aborted when what it is of has changed: for a peer, the Export, the Peering or its credential; for a
 * region, what is offered to it.
 */
export async function* streamExport(
	options: StreamExportOptions,
): AsyncGenerator<StreamResponse, void, undefined> {
	const { runtime, streamId, window } = options;
	const ended = new AbortController();
	const onAbort = () => ended.abort(options.signal.reason);
	options.signal.addEventListener("abort", onAbort, { once: true });
	if (options.signal.aborted) {
		onAbort();
	}
	const { signal } = ended;
	const waiting = new WaitingMessages();
	const exports = exportsOf(options);
	const { windowMessages, windowBytes, heartbeatMs, positionMs } = peeringLimits;
	const start = create(StreamStartSchema, { streamId, windowMessages, windowBytes });
	try {
		for (const [exported, version] of exports) {
			const messages = typeMessages(exported, {
				backend: options.backend,
				position: version,
				bookmarkMs: positionMs,
				signal,
			});
			pump(messages, waiting).catch((failure: unknown) => waiting.fail(failure));
		}
		endWhenChanged(options, signal).catch((failure: unknown) => waiting.fail(failure));
		yield numbered(window, { case: "start", value: start }, false);
		for (;;) {
			if (waiting.isEmpty) {
				// What has happened meanwhile comes within this turn.
				await new Promise<void>((resolve) => scheduleAfterInput(runtime.scheduler, resolve));
			}
			const message = await waiting.next(runtime, heartbeatMs, signal);
			await window.room(signal);
			// What was revoked while the window was full must not leave.
			waiting.throwIfFailed();
			yield numbered(window, message, waiting.isEmpty && !waiting.isInSnapshot);
		}
	} finally {
		options.signal.removeEventListener("abort", onAbort);
		ended.abort(new ConnectError("the stream has ended", Code.Canceled));
	}
}

/** The types to stream, and the versions after which they begin. @throws ConnectError InvalidArgument. */
function exportsOf({
	exports,
	maxTypes,
	request: { positions },
}: StreamExportOptions): ReadonlyMap<TypeExport, string> {
	if (positions.length > maxTypes) {
		throw new ConnectError(
			`positions has ${positions.length} entries, more than ${maxTypes}`,
			Code.InvalidArgument,
		);
	}
	const requested = new Map<TypeExport, string>();
	const families = new Set<string>();
	for (const { type, version } of positions) {
		const name = type === undefined ? "of a position" : gvkKey(type).slice(0, 200);
		const exported = exports.find((each) => type && sameType(each.type.type, type));
		if (exported === undefined) {
			throw new ConnectError(`type ${name} is not streamed`, Code.InvalidArgument);
		}
		const family = familyKey(exported.type.type);
		if (families.has(family)) {
			throw new ConnectError(`type ${name} has two positions`, Code.InvalidArgument);
		}
		families.add(family);
		requested.set(exported, version);
	}
	return requested;
}

function numbered(window: SendWindow, message: TypeMessage, isCurrent: boolean): StreamResponse {
	const response = create(StreamResponseSchema, { message, isCurrent });
	const bytes = message.case === "upsert" ? toBinary(StreamResponseSchema, response).length : 64;
	response.sequence = window.send(bytes);
	return response;
}

/** Passes the messages of one type on. */
async function pump(
	messages: AsyncGenerator<TypeMessage, void, undefined>,
	waiting: WaitingMessages,
): Promise<void> {
	for await (const message of messages) {
		await waiting.add(message);
	}
}

async function endWhenChanged(
	{ changed }: StreamExportOptions,
	signal: AbortSignal,
): Promise<never> {
	throw new ConnectError(`${await changed(signal)}: stream again`, Code.Aborted);
}

/** The messages of all types on their way into one stream. */
class WaitingMessages {
	readonly #messages: TypeMessage[] = [];
	#arrived: PromiseWithResolvers<void> | undefined;
	#room: PromiseWithResolvers<void> | undefined;
	#failure: { readonly reason: unknown } | undefined;
	#snapshots = 0;

	get isEmpty(): boolean {
		return this.#messages.length === 0;
	}

	/** Whether a type has begun a snapshot that has not been taken to its end. */
	get isInSnapshot(): boolean {
		return this.#snapshots > 0;
	}

	/** Resolves when there is room for more. */
	async add(message: TypeMessage): Promise<void> {
		this.#messages.push(message);
		this.#arrived?.resolve();
		this.#arrived = undefined;
		while (this.#messages.length >= maxWaiting) {
			this.#room ??= Promise.withResolvers();
			await this.#room.promise;
		}
	}

	fail(reason: unknown): void {
		this.#failure ??= { reason };
		this.#arrived?.resolve();
		this.#arrived = undefined;
	}

	/** @throws the failure of a type, or the change of the definition. */
	throwIfFailed(): void {
		if (this.#failure !== undefined) {
			throw this.#failure.reason;
		}
	}

	/** The next message; a heartbeat if there is none for so long. @throws the failure of a type. */
	async next(runtime: Runtime, heartbeatMs: number, signal: AbortSignal): Promise<TypeMessage> {
		for (;;) {
			signal.throwIfAborted();
			this.throwIfFailed();
			const message = this.#messages.shift();
			if (message !== undefined) {
				this.#room?.resolve();
				this.#room = undefined;
				this.#snapshots += message.case === "snapshotStart" ? 1 : 0;
				this.#snapshots -= message.case === "endOfSnapshot" ? 1 : 0;
				return message;
			}
			this.#arrived ??= Promise.withResolvers();
			const { promise } = this.#arrived;
			const waited = new AbortController();
			const quiet = sleep(runtime.clock, heartbeatMs, waited.signal).then(
				() => "quiet" as const,
				() => "arrived" as const,
			);
			const onAbort = () => this.fail(signal.reason);
			signal.addEventListener("abort", onAbort, { once: true });
			const outcome = await Promise.race([promise.then(() => "arrived" as const), quiet]);
			signal.removeEventListener("abort", onAbort);
			waited.abort();
			if (outcome === "quiet" && this.isEmpty && this.#failure === undefined) {
				return { case: "heartbeat", value: create(HeartbeatSchema) };
			}
		}
	}
}
