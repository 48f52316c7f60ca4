import { create } from "@bufbuild/protobuf";
import { type Random, silentLogger } from "@plinth/runtime";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Condition, operation } from "../client/conditions.ts";
import {
	Compare_CompareResult,
	Compare_CompareTarget,
	TxnRequestSchema,
} from "../gen/etcdserverpb/rpc_pb.ts";
import { Keys } from "../keys.ts";
import { ModelEtcd, type ModelRevision, modelClient } from "./model-etcd.fixture.ts";
import { HistoryLost, StoreHistory } from "./store-history.ts";
import type { StoredIdentity } from "./store-identity.ts";

const keys = new Keys("/model");
const identity: StoredIdentity = {
	uid: "uid",
	incarnation: "incarnation",
	cluster: "1",
	versionOffset: 0,
	restores: 0,
	value: Buffer.from("identity"),
};

/** One step of a run. */
type Step =
	/** A server applies so many of the revisions that it lacks. */
	| { readonly kind: "follow"; readonly server: number; readonly revisions: number }
	/** A server sends a transaction, decided against what it has applied. */
	| { readonly kind: "commit"; readonly server: number }
	/** A server catches up, as before a strong read. */
	| { readonly kind: "read"; readonly server: number }
	/** A server starts, and loads everything. */
	| { readonly kind: "start" }
	/** etcd loses its newest revisions. */
	| { readonly kind: "lose"; readonly revisions: number };

const servers = 3;
const step: fc.Arbitrary<Step> = fc.oneof(
	{
		weight: 5,
		arbitrary: fc.record({
			kind: fc.constant("follow" as const),
			server: fc.nat({ max: servers - 1 }),
			revisions: fc.integer({ min: 1, max: 4 }),
		}),
	},
	{
		weight: 6,
		arbitrary: fc.record({
			kind: fc.constant("commit" as const),
			server: fc.nat({ max: servers - 1 }),
		}),
	},
	{
		weight: 2,
		arbitrary: fc.record({
			kind: fc.constant("read" as const),
			server: fc.nat({ max: servers - 1 }),
		}),
	},
	{ weight: 1, arbitrary: fc.record({ kind: fc.constant("start" as const) }) },
	{
		weight: 1,
		arbitrary: fc.record({
			kind: fc.constant("lose" as const),
			revisions: fc.integer({ min: 1, max: 5 }),
		}),
	},
);

/** Draws from few slots, so that they are used again. */
function fewSlots(random: () => number): Random {
	return { next: () => Math.floor(random() * 3) / 4096 } as Random;
}

/** What conditions a transaction is sent with. */
type Guard = (history: StoreHistory) => readonly Condition[];

/** A server that follows the model as the backend follows etcd. */
class ModelServer {
	readonly history: StoreHistory;
	readonly applied: ModelRevision[] = [];
	readonly #etcd: ModelEtcd;
	readonly #client: ReturnType<typeof modelClient>;

	constructor(etcd: ModelEtcd, random: Random) {
		this.#etcd = etcd;
		this.#client = modelClient(etcd);
		const context = { client: this.#client, keys, random, logger: silentLogger };
		this.history = new StoreHistory(identity, context);
		for (const revision of etcd.history) {
			this.#apply(revision);
		}
	}

	/** Whether the store has everything that this server has applied. */
	get lacksNothing(): boolean {
		return this.applied.every(
			(revision, index) => this.#etcd.history[index]?.identity === revision.identity,
		);
	}

	/** Each call is a watch of its own, which begins at the mark. */
	follow(revisions: number): void {
		const { mark } = this.history;
		const first = mark === undefined ? undefined : this.#etcd.history[Number(mark.revision) - 2];
		if (mark !== undefined) {
			if (first === undefined) {
				return;
			}
			this.history.checkBegin(mark, mark.revision, first.puts.get("/model/head"));
		}
		for (let done = 0; done < revisions; done++) {
			const next = this.#etcd.history[this.applied.length];
			if (next === undefined) {
				return;
			}
			this.#apply(next);
		}
	}

	/**
	 * Sends a transaction; returns whether it was applied, whatever response the client received.
	 *
	 * @throws HistoryLost
	 */
	async commit(guard: Guard): Promise<boolean> {
		const { token, slot } = this.history.newMark();
		const value = Buffer.from(token);
		const request = create(TxnRequestSchema, {
			compare: [...guard(this.history)],
			success: [
				operation("requestPut", { key: keys.head, value }),
				operation("requestPut", { key: keys.commit(slot), value }),
			],
		});
		await this.#client.transaction(request).catch(() => {});
		const newest = this.#etcd.history.at(-1)?.puts.get("/model/head");
		return newest !== undefined && Buffer.compare(newest, value) === 0;
	}

	#apply(revision: ModelRevision): void {
		this.applied.push(revision);
		const head = revision.puts.get("/model/head");
		if (head !== undefined) {
			this.history.seen(BigInt(this.applied.length + 1), head);
		}
	}
}

/** Runs the steps; returns the first problem, and how often a proof or a refusal occurred. */
async function run(steps: readonly Step[], random: Random, guard: Guard) {
	const etcd = new ModelEtcd();
	etcd.transaction(
		create(TxnRequestSchema, {
			success: [operation("requestPut", { key: keys.identity, value: identity.value })],
		}),
	);
	const running = Array.from({ length: servers }, () => new ModelServer(etcd, random));
	const problems: string[] = [];
	for (const [index, each] of steps.entries()) {
		try {
			switch (each.kind) {
				case "start":
					running[index % servers] = new ModelServer(etcd, random);
					break;
				case "lose":
					etcd.restore(Math.max(1, etcd.history.length - each.revisions));
					break;
				default: {
					const server = running[each.server];
					if (server === undefined || server.history.lost.aborted) {
						break;
					}
					if (each.kind === "follow") {
						server.follow(each.revisions);
						break;
					}
					const { lacksNothing } = server;
					if (each.kind === "commit") {
						if ((await server.commit(guard)) && !lacksNothing) {
							problems.push(`step ${index}: a commit landed on a store that lacks history`);
						}
						break;
					}
					const { isProven } = await server.history.head();
					if (isProven && !lacksNothing) {
						problems.push(
							`step ${index}: a read was taken for proven on a store that lacks history`,
						);
					}
				}
			}
		} catch (error) {
			const server = "server" in each ? running[each.server] : undefined;
			if (server?.history.lost.aborted !== true) {
				throw error;
			}
			if (error instanceof HistoryLost && server.lacksNothing) {
				problems.push(`step ${index}: history was taken for lost that is there`);
			}
		}
	}
	return problems;
}

describe("the proof that etcd has lost no history", () => {
	const runs = 1_000;
	const property = (guard: Guard) =>
		fc.asyncProperty(
			fc.array(step, { minLength: 5, maxLength: 60 }),
			fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
			async (steps, draws) => {
				const next = () => draws.next().value ?? 0;
				expect(await run(steps, fewSlots(next), guard)).toEqual([]);
			},
		);

	it("lets no transaction and no read through on a store that lacks what its server has applied", async () => {
		await fc.assert(
			property((history) => history.intact()),
			{ numRuns: runs },
		);
	});

	it("is not given by the identity alone, which a restore brings back", async () => {
		const checked = fc.check(
			property((history) => history.intact().slice(0, 1)),
			{ numRuns: runs },
		);
		expect((await checked).failed).toBe(true);
	});

	it("is not given by a head that is far enough, which other servers bring forward", async () => {
		const guard: Guard = (history) => {
			const [same] = history.intact();
			const farEnough: Condition = {
				key: keys.head,
				target: Compare_CompareTarget.MOD,
				result: Compare_CompareResult.GREATER,
				targetUnion: { case: "modRevision", value: (history.mark?.revision ?? 1n) - 1n },
			};
			return same === undefined ? [] : [same, ...(history.mark === undefined ? [] : [farEnough])];
		};
		const checked = fc.check(property(guard), { numRuns: runs });
		expect((await checked).failed).toBe(true);
	});
});
