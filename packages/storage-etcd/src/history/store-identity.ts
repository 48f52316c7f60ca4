import { create } from "@bufbuild/protobuf";
import { newUlid } from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import { Inconsistent, raisedRevision } from "@plinth/storage";
import { hasValue, isMissing, keyOf, operation } from "../client/conditions.ts";
import type { EtcdClient } from "../client/etcd-client.ts";
import { TxnRequestSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import { type Keys, keyText } from "../keys.ts";
import { ForeignData } from "../state/decode-resource.ts";

/**
 * Which store this is, as kept under `<prefix>/identity`.
 *
 * The record is written when the store is made, and replaced once etcd has lost history: by the first
 * server that notices, by the first server that starts on another cluster than the record names, or by
 * `declareRestored`. Each of them begins a new *incarnation*, whose versions are above all versions before
 * (`versionOffset`). Servers of the incarnation before can't write any more, since each transaction compares
 * the record.
 *
 * Versions begin above 1,024 times the milliseconds since 1970 (see `raisedRevision`), in an empty store too: it
 * may be one that was wiped. So none is given out twice while etcd commits less than 1,024 times a millisecond,
 * clocks are right, and two incarnations begin further apart than the milliseconds that etcd's revision at the
 * first of them, divided by 1,024, comes to: 98 s for 100 million revisions.
 *
 * A store that an older Plinth has made has no record until the first server of this version starts. Its versions
 * stay as they are: etcd's revisions.
 */
export interface StoreIdentity {
	/** A ULID, drawn when the record was first written. */
	readonly uid: string;
	/** A ULID, drawn for each incarnation. */
	readonly incarnation: string;
	/** The etcd cluster that the incarnation began in, in hexadecimal. */
	readonly cluster: string;
	/** What versions are above etcd's revisions. */
	readonly versionOffset: number;
	/** How many incarnations the store had before this one, as far as it knows. */
	readonly restores: number;
}

/** An identity, and the value that it was read from. */
export interface StoredIdentity extends StoreIdentity {
	readonly value: Uint8Array;
}

/** What identities are kept with. */
export interface IdentityContext {
	readonly client: EtcdClient;
	readonly keys: Keys;
	readonly runtime: Pick<Runtime, "clock" | "random">;
	readonly log: Logger;
}

interface IdentityRead {
	readonly identity: StoredIdentity | undefined;
	/** Whether no server has ever written to the store. */
	readonly isEmpty: boolean;
	/** The cluster that answered, in hexadecimal. */
	readonly cluster: string;
	/** Its newest revision. */
	readonly revision: bigint;
}

/** How often a record is written that another server writes at the same time. */
const attempts = 10;

/**
 * The identity of the store: of a new one where it has none, of a new incarnation where the record is of
 * another etcd cluster, which means that etcd was restored.
 *
 * @throws EtcdError; ForeignData; Inconsistent.
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
		// What a server of an older version has written keeps the versions that it has given out.
		const next =
			identity === undefined && !read.isEmpty
				? { ...nextIncarnation(context, read, []), versionOffset: 0 }
				: nextIncarnation(context, read, []);
		const written = await replaceIdentity(context, identity, next, signal);
		if (written !== undefined && identity !== undefined) {
			context.log.warn(
				{ from: identity.cluster, to: cluster, versionsAbove: next.versionOffset },
				"etcd is another cluster than before: began a new incarnation of the store",
			);
		}
		if (written !== undefined) {
			return written;
		}
	}
	throw new Inconsistent("other servers keep replacing the identity of the store in etcd");
}

/**
 * Begins a new incarnation of a store whose etcd has lost history: versions above all versions before, and
 * no more writes by servers of the incarnation before.
 *
 * @param known What the caller knows of the store: nothing is done where that is another one by now. Absent:
 *   whatever it is now.
 * @returns the new identity; `undefined` if the store is not the known one.
 * @throws EtcdError; ForeignData; Inconsistent.
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
	throw new Inconsistent("other servers keep replacing the identity of the store in etcd");
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
): StoreIdentity {
	const nowMs = runtime.clock.now();
	const versionOffset = raisedRevision(nowMs, [
		...versions,
		(identity?.versionOffset ?? 0) + Number(revision),
	]);
	if (versionOffset === undefined) {
		throw new Inconsistent(
			`the clock says ${new Date(nowMs).toISOString()}: versions that are raised to that would run out. Set the clock`,
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

/** Replaces the record, if it is still the one that is given; `undefined` if it is not. */
async function replaceIdentity(
	{ client, keys }: IdentityContext,
	replaced: StoredIdentity | undefined,
	next: StoreIdentity,
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

function isIdentity(value: unknown): value is StoreIdentity {
	const { uid, incarnation, cluster, versionOffset, restores } = (value ?? {}) as Partial<
		Record<keyof StoreIdentity, unknown>
	>;
	return (
		[uid, incarnation, cluster].every((text) => typeof text === "string") &&
		[versionOffset, restores].every((count) => Number.isSafeInteger(count) && Number(count) >= 0)
	);
}

function notAnIdentity(keys: Keys, cause?: unknown): ForeignData {
	return new ForeignData(keyText(keys.identity), "it is not the identity of a store", { cause });
}
