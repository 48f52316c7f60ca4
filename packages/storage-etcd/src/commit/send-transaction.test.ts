import { Code, ConnectError } from "@connectrpc/connect";
import { systemClock } from "@plinth/runtime";
import { Exhausted } from "@plinth/storage";
import { putArtist } from "@plinth/storage/testing";
import { describe, expect, it } from "vitest";
import { etcdError } from "../client/etcd-error.ts";
import { Keys } from "../keys.ts";
import { VersionOffset } from "../state/version-offset.ts";
import { createPendingCommit, type PendingCommit } from "./pending-commit.ts";
import { type SendContext, sendTransaction } from "./send-transaction.ts";
import { Transaction } from "./transaction.ts";

const keys = new Keys("/test");

/** Sends three commits together to an etcd that refuses them; returns them and those that are sent again. */
async function refusedWith(message: string, code = Code.ResourceExhausted) {
	const names = ["a", "b", "c"];
	const commits = names.map((name) =>
		createPendingCommit([putArtist(name)], { sinceMs: 0 }, keys, () => {}),
	);
	const decided = commits.map((pending) => ({ pending, effects: [], versions: [], growth: 0 }));
	const transaction = new Transaction({ token: "server/1/1", slot: 1 }, decided);
	// Only these are used for a transaction that is refused.
	const context = {
		client: { transaction: () => Promise.reject(etcdError(new ConnectError(message, code))) },
		...{ keys, offset: new VersionOffset(0), clock: systemClock },
		history: { intact: () => [] },
	} as unknown as SendContext;
	const again: PendingCommit[] = [];
	await sendTransaction(transaction, context, (pending) => again.push(pending));
	return { commits, again };
}

describe("a transaction of several commits that etcd refuses", () => {
	it.each(["etcdserver: mvcc: database space exceeded", "etcdserver: too many requests"])(
		"fails all of them at once, if others would be refused too: %s",
		async (message) => {
			const { commits, again } = await refusedWith(message);
			expect(again).toEqual([]);
			for (const { result } of commits) {
				await expect(result).rejects.toThrow(Exhausted);
				await expect(result).rejects.toThrow(message);
			}
		},
	);

	it("is sent again in parts, if one of them may be the reason", async () => {
		const message = "etcdserver: request is too large";
		const { commits, again } = await refusedWith(message, Code.InvalidArgument);
		expect(again).toEqual(commits);
		expect(again.map(({ alone }) => alone)).toEqual([true, true, true]);
	});
});
