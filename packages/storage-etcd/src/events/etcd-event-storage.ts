import { create } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import {
	type EventRow,
	type EventStorage,
	type EventWriteOptions,
	StorageUnavailable,
} from "@plinth/storage";
import { type Operation, operation } from "../client/conditions.ts";
import type { EtcdClient } from "../client/etcd-client.ts";
import { EtcdError, RevisionCompacted } from "../client/etcd-error.ts";
import { rangePages } from "../client/range-pages.ts";
import { TxnRequestSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import { type Event, Event_EventType } from "../gen/mvccpb/kv_pb.ts";
import type { Keys } from "../keys.ts";
import { PeriodLeases, type PeriodLeasesContext } from "./period-leases.ts";

/** The dependencies of the rows of events. */
export interface EtcdEventsContext extends PeriodLeasesContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	/** Aborts with a StorageUnavailable when etcd has lost history. */
	readonly historyLost: AbortSignal;
}

/** How often reading starts again because etcd was compacted meanwhile. */
const attempts = 5;

interface StoredRows {
	readonly rows: readonly EventRow[];
	readonly revision: bigint;
}

/**
 * Rows of events in etcd, each under a key of its own (keys.ts). etcd itself removes them after their time to live,
 * with the lease that they are attached to (period-leases.ts).
 *
 * A write is not proven as a commit is (store-history.ts): until lost history is noticed, rows may be written to a
 * restored etcd, where they harm nothing. From then on, writes are refused as commits are.
 */
export class EtcdEventStorage implements EventStorage {
	readonly #context: EtcdEventsContext;
	readonly #leases: PeriodLeases;
	readonly #closing = new AbortController();
	/** Aborts when the storage is closed, or has failed. */
	readonly #end: AbortSignal;

	constructor(context: EtcdEventsContext) {
		this.#context = context;
		this.#leases = new PeriodLeases(context);
		this.#end = AbortSignal.any([this.#closing.signal, context.historyLost]);
	}

	async write(rows: readonly EventRow[], { ttlMs }: EventWriteOptions): Promise<void> {
		this.#end.throwIfAborted();
		// etcd refuses a transaction that names a key twice.
		const last = [...new Map(rows.map((row) => [row.key, row])).values()];
		if (last.length === 0) {
			return;
		}
		try {
			await this.#write(last, ttlMs);
		} catch (error) {
			throw this.#failure("write", error);
		}
	}

	async *follow(signal: AbortSignal): AsyncGenerator<readonly EventRow[], void, undefined> {
		const { client, keys } = this.#context;
		const stop = AbortSignal.any([signal, this.#end]);
		stop.throwIfAborted();
		try {
			const { rows, revision } = await this.#read(stop);
			yield rows;
			// From a revision that was read, which is skipped: older etcds do not send the deletions of the
			// revision at which they were compacted (etcd issue 19179).
			const { key, rangeEnd } = keys.events;
			const request = { key, rangeEnd, startRevision: revision };
			for await (const { events } of client.watch(request, stop)) {
				const changes = events.flatMap((event) => this.#changes(event, revision));
				if (changes.length > 0) {
					yield changes;
				}
			}
		} catch (error) {
			signal.throwIfAborted();
			throw this.#failure("follow", error);
		}
	}

	/** Refuses writes from now on, and ends those in progress and what follows. */
	close(): void {
		this.#closing.abort(new StorageUnavailable("the storage is closed"));
	}

	async #write(rows: readonly EventRow[], ttlMs: number): Promise<void> {
		const isPut = rows.some(({ body }) => body !== undefined);
		const lease = isPut ? await this.#leases.current(ttlMs, this.#end) : 0n;
		try {
			await this.#send(rows, lease);
		} catch (error) {
			if (!(isPut && error instanceof EtcdError && error.code === Code.NotFound)) {
				throw error;
			}
			// The lease is gone: it was revoked, or this process was suspended, or etcd was restored.
			this.#leases.forget(lease);
			await this.#send(rows, await this.#leases.current(ttlMs, this.#end));
		}
	}

	async #send(rows: readonly EventRow[], lease: bigint): Promise<void> {
		const { client, keys } = this.#context;
		const success = rows.map(({ key: row, body }): Operation => {
			const key = keys.event(row);
			return body === undefined
				? operation("requestDeleteRange", { key })
				: operation("requestPut", { key, value: body, lease });
		});
		await client.transaction(create(TxnRequestSchema, { success }), this.#end);
	}

	/** All rows, as of one revision. */
	async #read(signal: AbortSignal): Promise<StoredRows> {
		for (let attempt = 1; ; attempt++) {
			try {
				return await this.#readOnce(signal);
			} catch (error) {
				if (!(error instanceof RevisionCompacted) || attempt === attempts) {
					throw error;
				}
			}
		}
	}

	async #readOnce(signal: AbortSignal): Promise<StoredRows> {
		const { client, keys } = this.#context;
		const { header } = await client.range({ key: keys.events.key, keysOnly: true }, signal);
		const revision = header?.revision ?? 0n;
		const rows: EventRow[] = [];
		for await (const page of rangePages(client, keys.events, revision, signal)) {
			for (const { key, value } of page) {
				rows.push({ key: keys.eventKey(key), body: value });
			}
		}
		return { rows, revision };
	}

	/** The change that an event of the watch is, unless it was read already. */
	#changes({ type, kv }: Event, read: bigint): readonly EventRow[] {
		if (kv === undefined || kv.modRevision <= read) {
			return [];
		}
		const key = this.#context.keys.eventKey(kv.key);
		return [{ key, body: type === Event_EventType.DELETE ? undefined : kv.value }];
	}

	/** The error for the caller. */
	#failure(what: "write" | "follow", error: unknown): StorageUnavailable {
		this.#end.throwIfAborted();
		if (error instanceof StorageUnavailable) {
			return error;
		}
		const why = error instanceof Error ? error.message : String(error);
		return new StorageUnavailable(`can't ${what} events in etcd: ${why}`, { cause: error });
	}
}
