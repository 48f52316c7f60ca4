import { setImmediate } from "node:timers/promises";
import type { Clock, Logger } from "@plinth/runtime";
import type { LoadCapacity, StateStore } from "@plinth/storage";
import type { EtcdClient } from "../client/etcd-client.ts";
import { RevisionCompacted } from "../client/etcd-error.ts";
import { rangePages } from "../client/range-pages.ts";
import type { KeyValue } from "../gen/mvccpb/kv_pb.ts";
import { type Keys, keyText } from "../keys.ts";
import type { ResourceDecoder } from "./decode-resource.ts";
import type { VersionOffset } from "./version-offset.ts";

/** The dependencies of loading. */
export interface LoadContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly decoder: ResourceDecoder;
	readonly offset: VersionOffset;
	readonly clock: Clock;
	readonly logger: Logger;
	/** Creates an empty state. */
	makeStore(): StateStore;
}

/** A loaded state, and its revision in etcd. */
export interface Loaded {
	readonly store: StateStore;
	/** At least the revision of the state, which is that of the newest transaction of a server. */
	readonly revision: bigint;
	/** The head key as of that revision, as written by the newest transaction of a server; absent if there was none. */
	readonly head: KeyValue | undefined;
	/** The revision of the newest transaction of a server when the load began; 0 if there was none. */
	readonly newest: bigint;
}

/** The input of loading. */
export interface LoadFrom {
	/** A state of the same history, whose unchanged resources are reused. */
	readonly known?: StateStore;
	/** Checks that the state fits into memory; only on the first load, since a running server should not stop for it. */
	readonly capacity?: LoadCapacity;
	/**
	 * Whether to load an earlier revision, if etcd still has it, from which the watch then brings the state up to date. So
	 * watches that another server has begun can resume at this one after versions from before it was started.
	 */
	readonly recent?: boolean;
}

/** How many revisions back: the first of these that etcd has not compacted. The log of a state keeps more events. */
const recentRevisions = [8_192n, 2_048n, 512n, 128n];

/** How often progress is logged, in milliseconds. */
const progressEveryMs = 1000;
/** How often loading the newest revision starts again because etcd was compacted meanwhile. */
const attempts = 5;

/**
 * Reads everything as of one revision, page by page: the newest one, or a recent one.
 *
 * @throws EtcdError; UnrecognizedData; StateTooLarge.
 */
export async function load(
	context: LoadContext,
	signal: AbortSignal,
	from: LoadFrom,
): Promise<Loaded> {
	const back = [...(from.recent === true ? recentRevisions : []), ...Array(attempts).fill(0n)];
	for (let attempt = 1; ; attempt++) {
		try {
			return await loadOnce(context, signal, from, back[attempt - 1] ?? 0n);
		} catch (error) {
			if (!(error instanceof RevisionCompacted) || attempt === back.length) {
				throw error;
			}
		}
	}
}

/** The revision to load, and the head key as of that revision. */
interface Beginning {
	readonly revision: bigint;
	readonly head: KeyValue | undefined;
	/** The revision of the newest transaction of a server. */
	readonly newest: bigint;
}

/** @throws RevisionCompacted if etcd does not have the revision that far back. */
async function beginningOf(
	{ client, keys }: LoadContext,
	signal: AbortSignal,
	back: bigint,
): Promise<Beginning> {
	const { header, kvs } = await client.range({ key: keys.head }, signal);
	const [head] = kvs;
	const newest = { revision: header?.revision ?? 0n, head, newest: head?.modRevision ?? 0n };
	if (back === 0n) {
		return newest;
	}
	// Versions of earlier incarnations are other numbers.
	const identity = await client.range({ key: keys.identity, keysOnly: true }, signal);
	const first = identity.kvs[0]?.modRevision ?? newest.revision;
	const revision = newest.revision - back > first ? newest.revision - back : first;
	if (revision >= newest.revision) {
		return newest;
	}
	const earlier = await client.range({ key: keys.head, revision }, signal);
	return { ...newest, revision, head: earlier.kvs[0] };
}

async function loadOnce(
	context: LoadContext,
	signal: AbortSignal,
	{ known, capacity }: LoadFrom,
	back: bigint,
): Promise<Loaded> {
	const { client, keys, decoder, offset, clock, logger, makeStore } = context;
	const startMs = clock.monotonic();
	let loggedMs = startMs;
	const beginning = await beginningOf(context, signal, back);
	const { revision, head } = beginning;
	const store = makeStore();
	let newest = head?.modRevision ?? 0n;
	for await (const page of rangePages(client, keys.resources, revision, signal)) {
		for (const kv of page) {
			const name = keys.parse(keyText(kv.key));
			const before = name && known?.lookup(name);
			const same = before?.version === String(offset.versionOf(kv.modRevision));
			store.load(same ? before : decoder.decode(kv));
			newest = kv.modRevision > newest ? kv.modRevision : newest;
		}
		capacity?.check({ bytes: store.bytes, size: store.size });
		const nowMs = clock.monotonic();
		if (nowMs - loggedMs >= progressEveryMs) {
			loggedMs = nowMs;
			logger.info({ loaded: store.size }, "loading the storage");
		}
		await setImmediate();
	}
	store.begin(offset.versionOf(newest));
	const tookMs = Math.round(clock.monotonic() - startMs);
	logger.info({ resources: store.size, revision: store.revision, tookMs }, "storage loaded");
	return { store, revision, head, newest: beginning.newest };
}
