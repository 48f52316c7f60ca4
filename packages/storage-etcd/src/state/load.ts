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
	/** The head key as written by the newest transaction of a server; absent if there was none. */
	readonly head: KeyValue | undefined;
}

/** The input of loading. */
export interface LoadFrom {
	/** A state of the same history, whose unchanged resources are reused. */
	readonly known?: StateStore;
	/** Checks that the state fits into memory; only on the first load, since a running server should not stop for it. */
	readonly capacity?: LoadCapacity;
}

/** How often progress is logged, in milliseconds. */
const progressEveryMs = 1000;
/** How often loading starts again because etcd was compacted meanwhile. */
const attempts = 5;

/**
 * Reads everything as of one revision, page by page.
 *
 * @throws EtcdError; UnrecognizedData; StateTooLarge.
 */
export async function load(
	context: LoadContext,
	signal: AbortSignal,
	from: LoadFrom,
): Promise<Loaded> {
	for (let attempt = 1; ; attempt++) {
		try {
			return await loadOnce(context, signal, from);
		} catch (error) {
			if (!(error instanceof RevisionCompacted) || attempt === attempts) {
				throw error;
			}
		}
	}
}

async function loadOnce(
	{ client, keys, decoder, offset, clock, logger, makeStore }: LoadContext,
	signal: AbortSignal,
	{ known, capacity }: LoadFrom,
): Promise<Loaded> {
	const startMs = clock.monotonic();
	let loggedMs = startMs;
	const { header, kvs } = await client.range({ key: keys.head }, signal);
	const head = kvs[0];
	const revision = header?.revision ?? 0n;
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
	return { store, revision, head };
}
