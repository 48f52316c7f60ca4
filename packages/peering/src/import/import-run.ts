import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Type } from "@plinth/proto";
import {
	type GetExportResponse,
	type StreamResponse,
	TypePositionSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import type { ImportRecord } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { familyKey, gvkKey, type ResourceType, type TypeRegistry, typeOf } from "@plinth/resource";
import type { CopyCheck } from "@plinth/resource-service";
import { Backoff, type Logger, type Runtime, sleep } from "@plinth/runtime";
import { Exhausted, Fenced } from "@plinth/storage";
import { peeringLimits } from "../limits.ts";
import { Acknowledgments } from "./acknowledgments.ts";
import { MessageApplier } from "./apply-messages.ts";
import { messageOf, stateOf } from "./failure-state.ts";
import type { DialedSource, ImportSource } from "./import-source.ts";
import type { ImportStore } from "./import-store.ts";
import { Inbox } from "./inbox.ts";
import { LeftOutResources } from "./left-out.ts";
import type { ImportState, LiveImport } from "./live-import.ts";
import { type StreamedTypes, streamedTypes } from "./streamed-types.ts";

/** Options of `ImportRun`. */
export interface ImportRunOptions {
	readonly store: ImportStore;
	readonly live: LiveImport;
	readonly source: ImportSource;
	readonly registry: Pick<TypeRegistry, "get">;
	readonly check: Pick<CopyCheck, "problem">;
	readonly runtime: Runtime;
	readonly logger: Logger;
	/** What log lines have to identify the import. */
	readonly fields: Readonly<Record<string, string>>;
	/** How often an import that receives nothing new records that it is up to date, in milliseconds. */
	readonly recordMs: () => number;
	/** Called when the state has changed. */
	readonly onState: () => void;
}

/** The states in which the copies are removed: the source has said that there is nothing for this cluster. */
const endedStates: ReadonlySet<ImportState> = new Set([
	"ExportMissing",
	"PeeringRemoved",
	"NotOffered",
]);

/** Runs one import: dials its source, streams, and dials again after growing pauses. */
export class ImportRun {
	readonly #options: ImportRunOptions;
	readonly #backoff: Backoff;
	/** Whether what was left out before is to be tried again. */
	#retriesLeftOut = true;
	/** What the last stream of this run has left out. */
	#leftOut = new LeftOutResources();

	constructor(options: ImportRunOptions) {
		this.#options = options;
		const { clock, random } = options.runtime;
		const { shortestPauseMs: baseMs, longestPauseMs: maxMs } = peeringLimits;
		this.#backoff = new Backoff({ clock, random, baseMs, maxMs });
	}

	/**
	 * Runs until the signal aborts.
	 *
	 * @throws Fenced if another server runs the imports; the reason of the signal.
	 */
	async run(signal: AbortSignal): Promise<never> {
		const { live, store } = this.#options;
		live.restore(store.record);
		for (;;) {
			signal.throwIfAborted();
			try {
				await this.#dial(signal);
			} catch (failure) {
				signal.throwIfAborted();
				if (failure instanceof Fenced) {
					throw failure;
				}
				live.isCurrent = false;
				await this.#failed(failure);
			}
			await this.#backoff.wait(signal);
		}
	}

	async #failed(failure: unknown): Promise<void> {
		const { store, logger, live, fields } = this.#options;
		const state = stateOf(failure);
		const message = messageOf(failure);
		if (live.state !== state) {
			logger.warn({ ...fields, state, reason: message }, "import interrupted");
		}
		try {
			await store.reload();
			if (endedStates.has(state) && !store.isEmpty) {
				await store.removeAll({ state, message, leftOut: [], leftOutTotal: 0n });
			} else if (store.record.state !== state || store.record.message !== message) {
				await store.recordProgress({ state, message, ...this.#times() });
			}
		} catch (error) {
			if (error instanceof Fenced) {
				throw error;
			}
			logger.warn({ ...fields, err: error }, "import not recorded");
		}
		this.#setState(state, message);
	}

	#setState(state: ImportState, message = ""): void {
		const { live, onState } = this.#options;
		if (live.state !== state || live.message !== message) {
			live.state = state;
			live.message = message;
			onState();
		}
	}

	/** One connection, until it ends. */
	async #dial(signal: AbortSignal): Promise<void> {
		const { source, store } = this.#options;
		await store.reload();
		const ended = new AbortController();
		const onAbort = () => ended.abort(signal.reason);
		signal.addEventListener("abort", onAbort, { once: true });
		try {
			const connection = await source.dial(ended.signal);
			try {
				await this.#stream(connection);
			} finally {
				ended.abort(new ConnectError("the stream is no longer read", Code.Canceled));
				connection.close();
			}
		} finally {
			signal.removeEventListener("abort", onAbort);
		}
	}

	async #stream(source: DialedSource): Promise<void> {
		const { store, live, runtime, check, registry } = this.#options;
		const { offered, cluster, place } = await source.describe();
		live.heard();
		const { types, refused } = streamedTypes(offered, registry);
		if (place.kind === "region" && place.deployment !== store.record.deploymentUid) {
			await store.recordProgress({ deploymentUid: place.deployment });
		}
		await this.#prepare(offered, types, cluster);
		const leftOut = this.#continueLeftOut(types, refused);
		const applier = new MessageApplier({ store, place, types, registry, check, leftOut });
		const retried = this.#retriedOf(types, leftOut);
		const positions = types.map(({ key, family, type }) => {
			const known = applier.progress.positions.find(
				(each) => each.type && gvkKey(each.type) === key,
			);
			const version = retried.has(family) ? "" : (known?.version ?? "");
			return create(TypePositionSchema, { type: typeOf(type), version });
		});
		await this.#count(
			positions.map(({ version }) => version),
			leftOut,
		);
		const { generation, incarnation } = offered;
		const stream = source.stream({ generation, incarnation, positions });
		const inbox = new Inbox();
		readInto(inbox, stream, () => live.received()).catch((failure: unknown) => inbox.fail(failure));
		let streamId = "";
		const acknowledgments = new Acknowledgments(
			(sequence) => source.acknowledge(streamId, sequence),
			(failure) => inbox.fail(failure),
		);
		for (;;) {
			const silence = new AbortController();
			sleep(runtime.clock, peeringLimits.silenceMs, silence.signal).then(
				() => inbox.fail(new ConnectError("nothing was received for 30 s", Code.Unavailable)),
				() => {},
			);
			const messages = await inbox.take().finally(() => silence.abort());
			live.isCurrent = false;
			const { leftOutTotal } = store.record;
			await applier.apply(messages);
			await this.#reportNoRoom(applier);
			for (const type of snapshotsOf(messages)) {
				retried.delete(familyKey(type));
			}
			const last = messages.at(-1);
			const start = messages.find(({ message }) => message.case === "start")?.message;
			streamId = start?.case === "start" ? start.value.streamId : streamId;
			if (last === undefined || streamId === "") {
				throw new ConnectError("the stream has no start", Code.Internal);
			}
			acknowledgments.add(last.sequence);
			const isQuiet = last.isCurrent || last.message.case === "heartbeat";
			// What was skipped for lack of room is behind no position that is recorded.
			if (isQuiet && inbox.isEmpty && applier.isComplete && applier.noRoom === undefined) {
				await this.#current(applier, leftOut, retried.size === 0);
			}
			if (store.record.leftOutTotal !== leftOutTotal) {
				this.#options.onState();
			}
		}
	}

	/** What is left out already: resources as they were recorded, and types. */
	#continueLeftOut(
		types: readonly ResourceType[],
		refused: StreamedTypes["refused"],
	): LeftOutResources {
		const { record } = this.#options.store;
		const streamed = new Set(types.map(({ key }) => key));
		const leftOut = LeftOutResources.continued(record, streamed, this.#leftOut);
		for (const { key, reason } of refused) {
			leftOut.add(key, { namespace: "", name: "" }, reason);
		}
		this.#leftOut = leftOut;
		return leftOut;
	}

	/** The families that are requested from the beginning, for the sake of what was left out of them. */
	#retriedOf(types: readonly ResourceType[], leftOut: LeftOutResources): Set<string> {
		const keys = this.#retriesLeftOut ? leftOut.types : [];
		const retried = types.filter(({ key }) => leftOut.hasUnknownTypes || keys.includes(key));
		return new Set(retried.map(({ family }) => family));
	}

	/**
	 * Makes the store ready for a stream: with the partition of an import, and without copies of types that are no longer streamed. The
	 * positions of another incarnation, or of another content of the Export, mean nothing: all is requested again. So is a family
	 * of which resources were left out in another version than the one that is streamed now: they are no longer listed.
	 */
	async #prepare(
		{ generation, incarnation }: Pick<GetExportResponse, "generation" | "incarnation">,
		types: readonly ResourceType[],
		cluster: string,
	): Promise<void> {
		const { store } = this.#options;
		await store.createPartition(cluster);
		await store.removeFamilies(new Set(types.map(({ family }) => family)));
		const { record } = store;
		const isSame = record.generation === generation && record.incarnation === incarnation;
		const streamed = new Set(types.map(({ key }) => key));
		const outdated = new Set(
			record.leftOut
				.filter(({ type, name }) => name !== "" && !streamed.has(type))
				.map(({ type }) => familyOfKey(type)),
		);
		const kept = record.positions.filter(
			({ type }) => type && streamed.has(gvkKey(type)) && !outdated.has(familyKey(type)),
		);
		const positions = isSame ? kept : [];
		if (!isSame || kept.length < record.positions.length) {
			await store.recordProgress({ generation, incarnation, positions });
		}
	}

	/** Counts how the types of a stream begin, and records that it was opened. */
	async #count(versions: readonly string[], leftOut: LeftOutResources): Promise<void> {
		const { store } = this.#options;
		const snapshots = versions.filter((version) => version === "").length;
		const isRecorded = await this.#recordIfRoom({
			state: "Streaming",
			message: "",
			leftOut: [...leftOut.named],
			leftOutTotal: BigInt(leftOut.total),
			snapshots: store.record.snapshots + BigInt(snapshots),
			resumptions: store.record.resumptions + BigInt(versions.length - snapshots),
			...this.#times(),
		});
		if (isRecorded) {
			leftOut.recorded();
		}
		this.#setState("Streaming");
	}

	/** There is no room for more copies: the state says so while the stream goes on, for the sake of what it removes. */
	async #reportNoRoom({ noRoom }: MessageApplier): Promise<void> {
		const { live, logger, fields } = this.#options;
		if (noRoom === undefined) {
			return;
		}
		const state = stateOf(noRoom);
		if (live.state !== state) {
			const { message } = noRoom;
			logger.warn({ ...fields, state, reason: message }, "no more is copied");
			await this.#recordIfRoom({ state, message });
			this.#setState(state, message);
		}
	}

	/**
	 * Records what is not needed to continue. A full storage does without it, so that removals that make room are received.
	 * Returns whether it is recorded.
	 */
	async #recordIfRoom(progress: Partial<ImportRecord>): Promise<boolean> {
		try {
			await this.#options.store.recordProgress(progress);
			return true;
		} catch (failure) {
			if (!(failure instanceof Exhausted)) {
				throw failure;
			}
			return false;
		}
	}

	/**
	 * Everything that was received is stored, and the peer has nothing more.
	 *
	 * @param isRetried - whether all types that were requested again have been sent.
	 */
	async #current(
		applier: MessageApplier,
		leftOut: LeftOutResources,
		isRetried: boolean,
	): Promise<void> {
		const { live, store, recordMs } = this.#options;
		live.current();
		this.#backoff.reset();
		const isCorrected = isRetried && leftOut.hasUnknownTypes;
		if (isRetried) {
			this.#retriesLeftOut = false;
			leftOut.allSent();
		}
		const recordedMs = Number(store.record.currentMs);
		const sinceMs = live.currentMs - recordedMs;
		// A recorded time that lies in the future is of a clock that was ahead.
		if (isCorrected || recordedMs === 0 || sinceMs >= recordMs() || sinceMs < 0) {
			// The state too: a full storage may have refused it when the stream was opened.
			const isRecorded = await this.#recordIfRoom({
				...{ ...applier.progress, ...this.#times() },
				...{ state: "Streaming", message: "" },
			});
			if (isRecorded) {
				leftOut.recorded();
			}
		}
	}

	#times() {
		const { heardMs, currentMs } = this.#options.live;
		return { heardMs: BigInt(Math.floor(heardMs)), currentMs: BigInt(Math.floor(currentMs)) };
	}
}

async function readInto(
	inbox: Inbox,
	stream: AsyncIterable<StreamResponse>,
	onMessage: () => void,
): Promise<void> {
	for await (const message of stream) {
		onMessage();
		await inbox.add(message);
	}
	throw new ConnectError("the stream has ended", Code.Aborted);
}

/** The types of which messages begin a snapshot that has everything. */
function snapshotsOf(messages: readonly StreamResponse[]): readonly Type[] {
	return messages.flatMap(({ message }) =>
		message.case === "snapshotStart" && message.value.version === "" && message.value.type
			? [message.value.type]
			: [],
	);
}

/** The family of a registered type, by the key of the type. */
function familyOfKey(key: string): string {
	const [group = "", , kind = ""] = key.split(".");
	return familyKey({ group, kind });
}
