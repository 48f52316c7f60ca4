import { Code, ConnectError } from "@connectrpc/connect";
import { systemClock } from "@plinth/runtime";
import { Exhausted, StorageUnavailable } from "@plinth/storage";
import { artist, putArtist } from "@plinth/storage/testing";
import { describe, expect, it } from "vitest";
import { etcdError } from "../client/etcd-error.ts";
import { Keys } from "../keys.ts";
import { VersionOffset } from "../state/version-offset.ts";
import { createPendingCommit, type PendingCommit } from "./pending-commit.ts";
import { type SendContext, sendTransaction } from "./send-transaction.ts";
import { type DecidedCommit, Transaction } from "./transaction.ts";

const keys = new Keys("/test");

/** Sends three commits together to an etcd that refuses them; returns them and those that are sent again. */
async function refusedWith(
	message: string,
	code = Code.ResourceExhausted,
	/** Catches up with etcd. */
	newest: (transaction: Transaction, state: { store: object }) => Promise<void> = neverCalled,
) {
	const names = ["a", "b", "c"];
	const commits = names.map((name) =>
		createPendingCommit([putArtist(name)], { sinceMs: 0 }, keys, () => {}),
	);
	const decided = commits.map((pending, index): DecidedCommit => {
		const resource = artist(names[index] ?? "");
		const effects = [{ kind: "put", resource, replaced: undefined } as const];
		return { pending, effects, versions: [""], growth: 0 };
	});
	const transaction = new Transaction({ token: "server/1/1", slot: 1 }, decided);
	const state = { store: {} };
	// Only these are used for a transaction that is refused.
	const context = {
		client: { transaction: () => Promise.reject(etcdError(new ConnectError(message, code))) },
		...{ keys, offset: new VersionOffset(0), clock: systemClock, state },
		history: { intact: () => [] },
		catchUp: { newest: () => newest(transaction, state) },
	} as unknown as SendContext;
	const again: PendingCommit[] = [];
	const sent = sendTransaction(transaction, context, (pending) => again.push(pending));
	await sent.catch((error: unknown) => {
		// As the group commit does.
		for (const { reject } of commits) {
			reject(error);
		}
	});
	const results = await Promise.allSettled(again.length > 0 ? [] : commits.map(resultOf));
	return { commits, again, results };
}

const neverCalled = () => Promise.reject(new Error("no need to catch up"));
const resultOf = ({ result }: PendingCommit) => result;
const overQuota = "etcdserver: mvcc: database space exceeded";

/** What becomes of a commit that fails with such an error, whose message contains this. */
function rejected(kind: unknown, message: string) {
	return {
		status: "rejected",
		reason: expect.toSatisfy(
			(error: Error) => error.constructor === kind && error.message.includes(message),
		),
	};
}

/** The watch delivers that etcd has applied the commit of "a". */
async function deliverFirst(transaction: Transaction): Promise<void> {
	const resource = { ...artist("a"), version: "7" };
	transaction.delivered(7, new Map([[keys.resource(resource.id), { op: "put", resource }]]));
}

describe("a transaction of several commits that etcd refuses", () => {
	it("fails all of them at once, if others would be refused too", async () => {
		const message = "etcdserver: too many requests";
		const { again, results } = await refusedWith(message);
		expect(again).toEqual([]);
		expect(results).toEqual(Array(3).fill(rejected(Exhausted, message)));
	});

	it("fails those that were not applied, if etcd is over its quota", async () => {
		const none = await refusedWith(overQuota, undefined, async () => {});
		expect(none.again).toEqual([]);
		expect(none.results).toEqual(Array(3).fill(rejected(Exhausted, overQuota)));
		const first = await refusedWith(overQuota, undefined, deliverFirst);
		expect(first.again).toEqual([]);
		expect(first.results).toEqual([
			{ status: "fulfilled", value: expect.objectContaining({ version: "7" }) },
			...Array(2).fill(rejected(Exhausted, overQuota)),
		]);
	});

	it("leaves open what became of them, if etcd is over its quota and the watch can't tell", async () => {
		const unreachable = await refusedWith(overQuota, undefined, async () => {
			throw new StorageUnavailable("can't catch up");
		});
		expect(unreachable.results).toEqual(
			Array(3).fill(rejected(StorageUnavailable, "can't catch up")),
		);
		const loaded = await refusedWith(overQuota, undefined, async (_, state) => {
			state.store = {};
		});
		expect(loaded.results).toEqual(
			Array(3).fill(rejected(StorageUnavailable, "the commit may have been applied")),
		);
	});

	it("is sent again in parts, if one of them may be the reason", async () => {
		const message = "etcdserver: request is too large";
		const { commits, again } = await refusedWith(message, Code.InvalidArgument);
		expect(again).toEqual(commits);
		expect(again.map(({ alone }) => alone)).toEqual([true, true, true]);
	});
});
