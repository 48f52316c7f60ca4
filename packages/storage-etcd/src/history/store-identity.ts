import { create } from "@bufbuild/protobuf";
import { newUlid } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import { firstRevisionAfterRestore, StorageUnavailable } from "@plinth/storage";
import { hasValue, isMissing, keyOf, operation } from "../client/conditions.ts";
import type { EtcdClient } from "../client/etcd-client.ts";
import { TxnRequestSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import { type Keys, keyText } from "../keys.ts";
import { UnrecognizedData } from "../state/decode-resource.ts";
import { refuseOverlap } from "./overlapping-prefix.ts";

/**
 * The identity of the store, stored under `<prefix>/identity`.
 *
 * The record is written when the store is created, and replaced when etcd has lost history: by the first server
 * that notices, by the first server that starts on another cluster than recorded, or by `declareRestored`. Each
 * of them begins a new *incarnation*, whose versions are above all earlier ones (`versionOffset`). Servers of
 * the former incarnation can no longer write, since each transaction compares the record.
 *
 * Versions begin above 1,024 times the milliseconds since 1970 (see `firstRevisionAfterRestore`), even in an empty
 * store, which may have been wiped. So no version is issued twice while etcd commits less than 1,024 times a millisecond,
 * clocks are right, and the time between the beginnings of two incarnations is longer, in milliseconds, than etcd's
 * revision at the first of them divided by 1,024: 98 s at revision 100 million.
 *
 * A store of an older Plinth has no record until the first server of this version starts. Its versions remain
 * the revisions of etcd.
 */
export interface EtcdStorageIdentity {
	/** A ULID, generated when the record was first written. */
	readonly uid: string;
	/** A ULID, generated for each incarnation. */
	readonly incarnation: string;
	/** The etcd cluster that the incarnation began in, in hexadecimal. */
	readonly cluster: string;
	/** The difference between versions and etcd's revisions. */
	readonly versionOffset: number;
	/** The number of earlier incarnations that the store knows of. */
	readonly restores: number;
}

/** An identity, and the value that it was read from. */
export interface StoredIdentity extends EtcdStorageIdentity {
	readonly value: Uint8Array;
}

/** The dependencies of identities. */
export interface IdentityContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly runtime: Pick<Runtime, "clock" | "random">;
	readonly logger: Logger;
}

interface IdentityRead {
	readonly identity: StoredIdentity | undefined;
	/** Whether no server has ever written to the store. */
	readonly isEmpty: boolean;
	/** The id of the cluster that responded, in hexadecimal. */
	readonly cluster: string;
	/** Its newest revision. */
	readonly revision: bigint;
}

/** The maximum of attempts to write the record if other servers write it at the same time. */
const attempts = 10;

/**
 * Returns the identity of the store. Creates it if it is missing, and begins a new incarnation if it names
 * another etcd cluster, which means that etcd was restored.
 *
 * @throws EtcdError; UnrecognizedData; OverlappingPrefix if the store is new; StorageUnavailable.
 */
export async function openIdentity(
	context: IdentityContext,
	signal?: AbortSignal,
): Promise<StoredIdentity> {
	for (let attempt = 1; attempt <= attempts; attempt++) {
		const read = await readIdentity(context, signal);
		const { identity, cluster } = read;
		if (identity?.cluster === cluster) {
			return identity;
		}
		if (identity === undefined && read.isEmpty) {
			await refuseOverlap(context.client, context.keys.prefix, isIdentityRecord, signal);
		}
		// The resources of an older Plinth keep their versions.
		const next =
			identity === undefined && !read.isEmpty
				? { ...nextIncarnation(context, read, []), versionOffset: 0 }
				: nextIncarnation(context, read, []);
		const written = await replaceIdentity(context, identity, next, signal);
		if (written !== undefined && identity !== undefined) {
			context.logger.warn(
				{ from: identity.cluster, to: cluster, versionsAbove: next.versionOffset },
				"etcd is a different cluster than before: began a new incarnation of the store",
			);
		}
		if (written !== undefined) {
			return written;
		}
	}
	throw new StorageUnavailable("other servers keep replacing the identity of the store in etcd");
}

/**
 * Begins a new incarnation of a store whose etcd has lost history: with versions above all earlier ones, and
 * without writes by servers of the former incarnation.
 *
 * @param known The store as known to the caller; if the store is another one by now, nothing is done. If
 *   absent, the current store is replaced.
 * @returns the new identity; `undefined` if the store is not the known one.
 * @throws EtcdError; UnrecognizedData; StorageUnavailable.
 */
export async function beginIncarnation(
	context: IdentityContext,
	known?: { readonly identity: StoredIdentity; readonly newestVersion: number },
	signal?: AbortSignal,
): Promise<StoredIdentity | undefined> {
	for (let attempt = 1; attempt <= attempts; attempt++) {
		const read = await readIdentity(context, signal);
		const found = read.identity;
		if (known !== undefined && !mayReplace(read, known.identity)) {
			return undefined;
		}
		const versions = known === undefined ? [] : [known.newestVersion, known.identity.versionOffset];
		const written = await replaceIdentity(
			context,
			found,
			nextIncarnation(context, read, versions),
			signal,
		);
		if (written !== undefined) {
			return written;
		}
	}
	throw new StorageUnavailable("other servers keep replacing the identity of the store in etcd");
}

/**
 * Whether the store is the known one, the same cluster without its data, or the same cluster with an incarnation
 * from before the known one, which an old copy brings back. Later incarnations have higher offsets.
 */
function mayReplace({ identity, cluster }: IdentityRead, known: StoredIdentity): boolean {
	return (
		cluster === known.cluster &&
		(identity === undefined ||
			isSame(identity, known) ||
			identity.versionOffset <= known.versionOffset)
	);
}

/** Whether two records are the same, byte by byte. */
export function isSame(one: { value: Uint8Array }, other: { value: Uint8Array }): boolean {
	return Buffer.compare(one.value, other.value) === 0;
}

async function readIdentity(
	{ client, keys }: IdentityContext,
	signal?: AbortSignal,
): Promise<IdentityRead> {
	const { header, responses } = await client.readTransaction(
		{
			success: [
				operation("requestRange", { key: keys.identity }),
				operation("requestRange", { key: keys.head, keysOnly: true }),
			],
		},
		signal,
	);
	const [found, head] = responses.map(keyOf);
	return {
		identity: found && parseIdentity(keys, found.value),
		isEmpty: head === undefined,
		cluster: (header?.clusterId ?? 0n).toString(16),
		revision: header?.revision ?? 0n,
	};
}

function nextIncarnation(
	{ runtime }: IdentityContext,
	{ identity, cluster, revision }: IdentityRead,
	versions: readonly number[],
): EtcdStorageIdentity {
	const nowMs = runtime.clock.now();
	const versionOffset = firstRevisionAfterRestore(nowMs, [
		...versions,
		(identity?.versionOffset ?? 0) + Number(revision),
	]);
	if (versionOffset === undefined) {
		throw new StorageUnavailable(
			`the clock is at ${new Date(nowMs).toISOString()}: versions derived from it would run out. Set the clock`,
		);
	}
	return {
		uid: identity?.uid ?? newUlid(runtime),
		incarnation: newUlid(runtime),
		cluster,
		versionOffset,
		restores: identity === undefined ? 0 : identity.restores + 1,
	};
}

/** Replaces the record if it is still `replaced`; otherwise returns `undefined`. */
async function replaceIdentity(
	{ client, keys }: IdentityContext,
	replaced: StoredIdentity | undefined,
	next: EtcdStorageIdentity,
	signal?: AbortSignal,
): Promise<StoredIdentity | undefined> {
	const value = Buffer.from(JSON.stringify(next));
	const unchanged =
		replaced === undefined
			? [isMissing(keys.identity), ...(next.versionOffset === 0 ? [] : [isMissing(keys.head)])]
			: [hasValue(keys.identity, replaced.value)];
	const { succeeded } = await client.transaction(
		create(TxnRequestSchema, {
			compare: unchanged,
			success: [operation("requestPut", { key: keys.identity, value })],
		}),
		signal,
	);
	return succeeded ? { ...next, value } : undefined;
}

function parseIdentity(keys: Keys, value: Uint8Array): StoredIdentity {
	let parsed: unknown;
	try {
		parsed = JSON.parse(Buffer.from(value).toString());
	} catch (cause) {
		throw notAnIdentity(keys, cause);
	}
	if (!isIdentity(parsed)) {
		throw notAnIdentity(keys);
	}
	return { ...parsed, value };
}

/** Whether a value that is stored under some key is the identity of a store. */
function isIdentityRecord(value: Uint8Array): boolean {
	try {
		return isIdentity(JSON.parse(Buffer.from(value).toString()));
	} catch {
		return false;
	}
}

function isIdentity(value: unknown): value is EtcdStorageIdentity {
	const { uid, incarnation, cluster, versionOffset, restores } = (value ?? {}) as Partial<
		Record<keyof EtcdStorageIdentity, unknown>
	>;
	return (
		[uid, incarnation, cluster].every((text) => typeof text === "string") &&
		[versionOffset, restores].every((count) => Number.isSafeInteger(count) && Number(count) >= 0)
	);
}

function notAnIdentity(keys: Keys, cause?: unknown): UnrecognizedData {
	return new UnrecognizedData(keyText(keys.identity), "it is not the identity of a store", {
		cause,
	});
}
