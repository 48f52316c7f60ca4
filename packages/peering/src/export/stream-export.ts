import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import {
	HeartbeatSchema,
	type StreamRequest,
	type StreamResponse,
	StreamResponseSchema,
	StreamStartSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { gvkKey, idOf, sameType, typeOf } from "@plinth/resource";
import { type Runtime, scheduleAfterInput, sleep } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { peeringLimits } from "../limits.ts";
import { recordId } from "../records/peering-records.ts";
import { acceptsCredential, type Peer } from "../trust/peer-access.ts";
import { Export, Peering } from "../types.ts";
import type { OfferedExport } from "./offered-export.ts";
import type { SendWindow } from "./send-window.ts";
import type { TypeExport } from "./type-export.ts";
import { type TypeMessage, typeMessages } from "./type-messages.ts";

/** A stream to a peer. */
export interface StreamExportOptions {
	readonly backend: StorageBackend;
	readonly runtime: Runtime;
	readonly peer: Peer;
	readonly offered: OfferedExport;
	readonly request: StreamRequest;
	readonly streamId: string;
	readonly window: SendWindow;
	readonly signal: AbortSignal;
}

/** Messages of all types that wait to be sent. A type that has more waits. */
const maxWaiting = 64;

/**
 * Streams an export: the messages of its types, each in order, one after the other as they come, while the window has
 * room. It ends with Aborted when the Export, the Peering or its credential has changed: each stream is of one definition, and
 * of a credential that is accepted.
 */
export async function* streamExport(
	options: StreamExportOptions,
): AsyncGenerator<StreamResponse, void, undefined> {
	const { offered, runtime, request, streamId, window } = options;
	const ended = new AbortController();
	const onAbort = () => ended.abort(options.signal.reason);
	options.signal.addEventListener("abort", onAbort, { once: true });
	if (options.signal.aborted) {
		onAbort();
	}
	const { signal } = ended;
	const waiting = new WaitingMessages();
	const exports = exportsOf(offered, request);
	const { windowMessages, windowBytes, heartbeatMs } = peeringLimits;
	const start = create(StreamStartSchema, { streamId, windowMessages, windowBytes });
	try {
		for (const [exported, version] of exports) {
			const messages = typeMessages(exported, {
				backend: options.backend,
				position: version,
				bookmarkMs: heartbeatMs,
				signal,
			});
			pump(messages, waiting).catch((failure: unknown) => waiting.fail(failure));
		}
		watchDefinition(options, signal).catch((failure: unknown) => waiting.fail(failure));
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
function exportsOf({ exports }: OfferedExport, { positions }: StreamRequest) {
	if (positions.length > peeringLimits.types) {
		throw new ConnectError(
			`positions has ${positions.length} entries, more than ${peeringLimits.types}`,
			Code.InvalidArgument,
		);
	}
	const requested = new Map<TypeExport, string>();
	for (const { type, version } of positions) {
		const name = type === undefined ? "of a position" : gvkKey(type).slice(0, 200);
		const exported = exports.find((each) => type && sameType(each.type.type, type));
		if (exported === undefined) {
			throw new ConnectError(`type ${name} is not streamed`, Code.InvalidArgument);
		}
		if (requested.has(exported)) {
			throw new ConnectError(`type ${name} has two positions`, Code.InvalidArgument);
		}
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

/** Ends with an error when the definition of the stream has changed. */
async function watchDefinition(
	{ backend, peer, offered, request }: StreamExportOptions,
	signal: AbortSignal,
): Promise<void> {
	const changed = (id: ID, isSame: (it: Resource) => boolean) =>
		follow(backend, id, signal, isSame);
	await Promise.race([
		changed(
			idOf(Export, request.export),
			({ id, generation }) => `${id?.uid}/${generation}` === offered.generation,
		),
		changed(idOf(Peering, peer.name), ({ id }) => id?.uid === peer.peeringId),
		changed(recordId("exporting", peer.peeringId), (record) =>
			acceptsCredential(record, peer.credentialHash),
		),
	]);
	throw new ConnectError(
		"the Export, the Peering or its credential has changed: stream again",
		Code.Aborted,
	);
}

/** Resolves when a resource is no longer as it was. */
async function follow(
	backend: StorageBackend,
	{ type = typeOf(Export.type), name }: ID,
	signal: AbortSignal,
	isSame: (resource: Resource) => boolean,
): Promise<void> {
	let isThere = false;
	const query = { type, tenancy: { partition: "", namespace: "" }, namePrefix: name };
	for await (const event of backend.watchList(query, { signal })) {
		if (event.kind === "end-of-snapshot") {
			if (!isThere) {
				return;
			}
		} else if ("resource" in event && event.resource.id?.name === name) {
			isThere = event.kind === "upsert" && isSame(event.resource);
			if (!isThere) {
				return;
			}
		}
	}
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
