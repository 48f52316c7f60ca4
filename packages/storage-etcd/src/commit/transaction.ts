import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import { freezeInDevelopment } from "@plinth/resource";
import type { Change, Commit, Step } from "@plinth/storage";
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

/** The head and the slot are put before what the commits do. */
const putsOfMark = 2;

/** A commit as it was decided against a state. */
export interface DecidedCommit {
	readonly pending: PendingCommit;
	readonly steps: readonly Step[];
	/** Per mutation: the version that its key has in that state; empty if it is not there. */
	readonly versions: readonly string[];
	/** By how many bytes it makes the state grow. */
	readonly growth: number;
}

/** What etcd answers to one commit. */
export type CommitAnswer = "done" | "conflict" | "fenced";

/**
 * Commits that share a transaction of etcd.
 *
 * ```
 *   if <the store has everything that this server has seen>
 *   put <prefix>/head = <token>, <prefix>/commits/<slot> = <token>
 *   if <each key of commit 1 is at its version>, <its lease's key is the holder's>
 *      then <puts and deletions of commit 1>
 *      else <read the lease's key>
 *   if … commit 2 …
 * ```
 *
 * The token in the head says which transaction of which server a revision is of. When the revision
 * comes along in the watch, the keys that it has changed say which commits were done, whether or not
 * etcd's answer ever arrives: a commit changes a key at least, and no two of them the same.
 */
export class Transaction {
	readonly mark: CommitMark;
	readonly commits: readonly DecidedCommit[];
	/** Resolves with the revision when it has come along in the watch, and is applied. */
	readonly applied: Promise<number>;
	readonly #applied = Promise.withResolvers<number>();
	readonly #puts = new Map<string, Resource>();

	constructor(mark: CommitMark, commits: readonly DecidedCommit[]) {
		this.mark = mark;
		this.commits = commits;
		this.applied = this.#applied.promise;
		for (const { pending, steps } of commits) {
			for (const [index, step] of steps.entries()) {
				const key = pending.keys[index];
				if (step.kind === "put" && key !== undefined) {
					this.#puts.set(key, step.resource);
				}
			}
		}
	}

	/** The resource that it puts under the key, at its revision, if it puts one. */
	stamped(key: string, revision: number): Resource | undefined {
		const resource = this.#puts.get(key);
		return resource && freezeInDevelopment({ ...resource, version: String(revision) });
	}

	/** Takes what a revision has changed, once it is applied, and answers the commits that did it. */
	landed(revision: number, changes: ReadonlyMap<string, Change>): void {
		for (const { pending, steps } of this.commits) {
			const done = steps.some(
				(step, index) => step.kind !== "none" && changes.has(pending.keys[index] ?? ""),
			);
			if (done) {
				pending.resolve(answer(pending, steps, revision, (key) => changes.get(key)?.resource));
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

/** What was done, where it is known to be. */
export function answer(
	{ keys }: PendingCommit,
	steps: readonly Step[],
	revision: number,
	stored: (key: string) => Resource | undefined,
): Commit {
	const version = String(revision);
	const resources = steps.map((step, index) => {
		if (step.kind !== "put") {
			return undefined;
		}
		const resource = stored(keys[index] ?? "");
		return resource?.version === version
			? resource
			: freezeInDevelopment({ ...step.resource, version });
	});
	return { version, resources };
}

/** Per commit, what etcd has answered. */
export function answersOf(response: TxnResponse, commits: readonly DecidedCommit[]) {
	return commits.map(({ pending }, index): CommitAnswer => {
		const { response: answered } = response.responses[index + putsOfMark] ?? {};
		if (answered?.case !== "responseTxn") {
			throw new TypeError("etcd answered a transaction with something else");
		}
		if (answered.value.succeeded) {
			return "done";
		}
		const [lease] = answered.value.responses;
		const holder =
			lease?.response.case === "responseRange" ? lease.response.value.kvs[0] : undefined;
		const fenced =
			pending.fence !== undefined && String(holder?.createRevision) !== pending.fence.token;
		return fenced ? "fenced" : "conflict";
	});
}

function nested({ pending, steps, versions }: DecidedCommit, keys: Keys, offset: VersionOffset) {
	const compare: Condition[] = [];
	const success: Operation[] = [];
	let puts = 0;
	for (const [index, text] of pending.keys.entries()) {
		const key = Buffer.from(text);
		compare.push(atRevision(key, offset.revisionOf(versions[index] ?? "")));
		const step = steps[index];
		if (step?.kind === "put") {
			const value = pending.bodies[puts++] ?? new Uint8Array();
			success.push(operation("requestPut", { key, value }));
		} else if (step?.kind === "delete") {
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
