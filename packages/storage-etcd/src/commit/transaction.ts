import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import { freezeInDevelopment } from "@plinth/resource";
import type { CommitResult, MutationEffect, StateChange } from "@plinth/storage";
import {
	atRevision,
	type Condition,
	heldBy,
	type Operation,
	operation,
} from "../client/conditions.ts";
import { type TxnRequest, TxnRequestSchema, type TxnResponse } from "../gen/etcdserverpb/rpc_pb.ts";
import type { CommitMark } from "../history/store-history.ts";
import type { Keys } from "../keys.ts";
import type { VersionOffset } from "../state/version-offset.ts";
import type { PendingCommit } from "./pending-commit.ts";

/** The puts of the head and the slot precede the commits. */
const putsOfMark = 2;

/** A commit that was decided against a state. */
export interface DecidedCommit {
	readonly pending: PendingCommit;
	readonly effects: readonly MutationEffect[];
	/** Per mutation: the version of its key in that state; empty if missing. */
	readonly versions: readonly string[];
	/** The bytes by which it grows the state. */
	readonly growth: number;
}

/** The outcome of one commit in a response of etcd. */
export type CommitOutcome = "done" | "conflict" | "fenced";

/**
 * An etcd transaction shared by some commits.
 *
 * ```
 *   if <the store has everything that this server has seen>
 *   put <prefix>/head = <token>, <prefix>/commits/<slot> = <token>
 *   if <each key of commit 1 is at its version>, <its lease has the holder of its fence>
 *      then <puts and deletions of commit 1>
 *      else <read the lease's key>
 *   if … commit 2 …
 * ```
 *
 * The token in the head identifies the transaction and server of a revision. When the watch delivers the
 * revision, the changed keys show which commits were applied, even if the response of etcd never arrives:
 * each commit changes at least one key, and no two commits the same key.
 */
export class Transaction {
	readonly mark: CommitMark;
	readonly commits: readonly DecidedCommit[];
	/** Resolves with the revision when the watch has delivered it and it is applied. */
	readonly applied: Promise<number>;
	readonly #applied = Promise.withResolvers<number>();
	readonly #puts = new Map<string, Resource>();
	/** Who has made the commit that writes the key. */
	readonly #writers = new Map<string, string>();

	constructor(mark: CommitMark, commits: readonly DecidedCommit[]) {
		this.mark = mark;
		this.commits = commits;
		this.applied = this.#applied.promise;
		for (const { pending, effects } of commits) {
			for (const [index, effect] of effects.entries()) {
				const key = pending.keys[index];
				if (effect.kind === "none" || key === undefined) {
					continue;
				}
				this.#writers.set(key, pending.writtenBy);
				if (effect.kind === "put") {
					this.#puts.set(key, effect.resource);
				}
			}
		}
	}

	/** The resource that it puts under the key, at its revision, if any. */
	stamped(key: string, revision: number): Resource | undefined {
		const resource = this.#puts.get(key);
		return resource && freezeInDevelopment({ ...resource, version: String(revision) });
	}

	/** Who has made the commit that writes the key. */
	writtenBy(key: string): string | undefined {
		return this.#writers.get(key);
	}

	/** Resolves the commits whose changes a revision has, after it was applied. */
	delivered(revision: number, changes: ReadonlyMap<string, StateChange>): void {
		for (const { pending, effects } of this.commits) {
			const done = effects.some(
				(effect, index) => effect.kind !== "none" && changes.has(pending.keys[index] ?? ""),
			);
			if (done) {
				pending.resolve(resultOf(pending, effects, revision, (key) => changes.get(key)?.resource));
			}
		}
		this.#applied.resolve(revision);
	}

	/**
	 * The request to etcd.
	 *
	 * @param intact The conditions under which the store has everything that this server has seen.
	 */
	request(keys: Keys, offset: VersionOffset, intact: readonly Condition[]): TxnRequest {
		const value = Buffer.from(this.mark.token);
		return create(TxnRequestSchema, {
			compare: [...intact],
			success: [
				operation("requestPut", { key: keys.head, value }),
				operation("requestPut", { key: keys.commit(this.mark.slot), value }),
				...this.commits.map((commit) => operation("requestTxn", nested(commit, keys, offset))),
			],
		});
	}
}

/** The result of an applied commit. */
export function resultOf(
	{ keys }: PendingCommit,
	effects: readonly MutationEffect[],
	revision: number,
	stored: (key: string) => Resource | undefined,
): CommitResult {
	const version = String(revision);
	const resources = effects.map((effect, index) => {
		if (effect.kind !== "put") {
			return undefined;
		}
		const resource = stored(keys[index] ?? "");
		return resource?.version === version
			? resource
			: freezeInDevelopment({ ...effect.resource, version });
	});
	return { version, resources };
}

/** The outcome of each commit. */
export function outcomesOf(response: TxnResponse, commits: readonly DecidedCommit[]) {
	return commits.map(({ pending }, index): CommitOutcome => {
		const { response: result } = response.responses[index + putsOfMark] ?? {};
		if (result?.case !== "responseTxn") {
			throw new TypeError("unexpected response of etcd to a transaction");
		}
		if (result.value.succeeded) {
			return "done";
		}
		const [lease] = result.value.responses;
		const holder =
			lease?.response.case === "responseRange" ? lease.response.value.kvs[0] : undefined;
		const fenced =
			pending.fence !== undefined && String(holder?.createRevision) !== pending.fence.token;
		return fenced ? "fenced" : "conflict";
	});
}

function nested({ pending, effects, versions }: DecidedCommit, keys: Keys, offset: VersionOffset) {
	const compare: Condition[] = [];
	const success: Operation[] = [];
	let puts = 0;
	for (const [index, text] of pending.keys.entries()) {
		const key = Buffer.from(text);
		compare.push(atRevision(key, offset.revisionOf(versions[index] ?? "")));
		const effect = effects[index];
		if (effect?.kind === "put") {
			const value = pending.bodies[puts++] ?? new Uint8Array();
			success.push(operation("requestPut", { key, value }));
		} else if (effect?.kind === "delete") {
			success.push(operation("requestDeleteRange", { key }));
		}
	}
	const failure: Operation[] = [];
	if (pending.fence !== undefined) {
		compare.push(heldBy(pending.fence, keys));
		failure.push(
			operation("requestRange", { key: keys.lease(pending.fence.lease), keysOnly: true }),
		);
	}
	return { compare, success, failure };
}
