import { Code } from "@connectrpc/connect";
import { StorageError } from "@plinth/storage";
import { keyOf, operation } from "../client/conditions.ts";
import type { EtcdClient } from "../client/etcd-client.ts";
import { EtcdError } from "../client/etcd-error.ts";
import { Keys, keyText } from "../keys.ts";

/** The prefix of a new store lies below that of another one, or above: one watches and reads keys of the other. */
export class OverlappingPrefix extends StorageError {}

type IsIdentity = (value: Uint8Array) => boolean;

/** The maximum of keys below the prefix that are looked at. A store has more of them, and they are adjacent. */
const mostKeys = 100n;

/**
 * Refuses the prefix of a store that does not exist yet if it lies below that of another store, or above. Stores that exist
 * are not checked: they worked until now. If two stores are created at the same time, this may go unnoticed. The same is so
 * if the user of etcd may not read the keys of others.
 *
 * @param isIdentity - Whether a value is the identity of a store: other programs may have keys of that name.
 * @throws OverlappingPrefix; EtcdError; the signal's reason.
 */
export async function refuseOverlap(
	client: EtcdClient,
	prefix: string,
	isIdentity: IsIdentity,
	signal?: AbortSignal,
): Promise<void> {
	const above = await firstStore(client, ancestors(prefix), isIdentity, signal);
	if (above !== undefined) {
		throw new OverlappingPrefix(
			`the prefix ${JSON.stringify(prefix)} lies below ${JSON.stringify(above)}, the prefix of another store in etcd: choose one that does not begin with ${JSON.stringify(`${above}/`)}`,
		);
	}
	const candidates = await candidatesBelow(client, prefix, signal);
	const below = await firstStore(client, candidates, isIdentity, signal);
	if (below !== undefined) {
		throw new OverlappingPrefix(
			`the prefix ${JSON.stringify(prefix)} lies above ${JSON.stringify(below)}, the prefix of another store in etcd: choose one with which that does not begin`,
		);
	}
}

/** The prefixes that this one lies below: `/a` and the empty one, for `/a/b`. */
function ancestors(prefix: string): readonly string[] {
	const parts = prefix.split("/");
	return parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("/"));
}

/** The prefixes below that the first keys there may belong to. */
async function candidatesBelow(
	client: EtcdClient,
	prefix: string,
	signal?: AbortSignal,
): Promise<readonly string[]> {
	const page = await unlessForbidden(
		client.range(
			{
				// "0" comes after "/".
				...{ key: Buffer.from(`${prefix}/`), rangeEnd: Buffer.from(`${prefix}0`) },
				...{ limit: mostKeys, keysOnly: true },
			},
			signal,
		),
	);
	const found = (page?.kvs ?? []).flatMap(
		({ key }) => /^(.*)\/(?:commits\/|head$|identity$)/s.exec(keyText(key))?.[1] ?? [],
	);
	return [...new Set(found)].filter((each) => each !== prefix);
}

/** The first of these prefixes that a store has. */
async function firstStore(
	client: EtcdClient,
	prefixes: readonly string[],
	isIdentity: IsIdentity,
	signal?: AbortSignal,
): Promise<string | undefined> {
	if (prefixes.length === 0) {
		return undefined;
	}
	const success = prefixes
		.slice(0, Number(mostKeys))
		.map((prefix) => operation("requestRange", { key: new Keys(prefix).identity }));
	const read = await unlessForbidden(client.readTransaction({ success }, signal));
	const found = read?.responses.findIndex((response) => {
		const stored = keyOf(response);
		return stored !== undefined && isIdentity(stored.value);
	});
	return prefixes[found ?? -1];
}

/** The result of a read; `undefined` if the user of etcd may not read that. */
async function unlessForbidden<T>(read: Promise<T>): Promise<T | undefined> {
	try {
		return await read;
	} catch (error) {
		if (error instanceof EtcdError && error.code === Code.PermissionDenied) {
			return undefined;
		}
		throw error;
	}
}
