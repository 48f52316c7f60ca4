import { fromBinary } from "@bufbuild/protobuf";
import { ResourceSchema } from "@plinth/proto";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import {
	CasFailure,
	type CommitBatch,
	defaultStorageLimits,
	Exhausted,
	Fenced,
	type Mutation,
	type Rebase,
	StateStore,
	StorageUnavailable,
} from "@plinth/storage";
import { artist, textOf } from "@plinth/storage/testing";
import { beforeEach, describe, expect, it } from "vitest";
import type { RowWrite } from "../file/row-table.ts";
import { WriteFailure } from "../thread/storage-thread.ts";
import { GroupCommit } from "./group-commit.ts";

/** A write that the test completes. */
interface Write {
	readonly revision: number;
	readonly rows: readonly RowWrite[];
	succeed(): void;
	fail(error: Error): void;
}

let store: StateStore;
let writes: Write[];
let fenced: boolean;
let groups: GroupCommit;
let clock: FakeClock;
let batches: CommitBatch[];
let broken: Error[];
let logged: (readonly [string, unknown])[];

beforeEach(() => {
	store = new StateStore(systemRuntime, defaultStorageLimits);
	writes = [];
	fenced = false;
	clock = new FakeClock();
	batches = [];
	broken = [];
	logged = [];
	groups = new GroupCommit({
		store: () => store,
		scheduler: systemRuntime.scheduler,
		clock,
		onBatch: (batch) => batches.push(batch),
		onBroken: (failure) => broken.push(failure),
		log: {
			warn: (fields, message) => logged.push([message, fields]),
			info: (fields, message) => logged.push([message, fields]),
		},
		limits: defaultStorageLimits,
		isCurrent: () => !fenced,
		write: (revision, rows) =>
			new Promise((resolve, reject) => {
				writes.push({ revision, rows, succeed: resolve, fail: reject });
			}),
	});
});

function put(name: string, expectedVersion = "", text = ""): Mutation {
	return { op: "put", resource: artist(name, text), expectedVersion };
}

/** Runs everything that does not wait for the disk. */
function settle(): Promise<void> {
	return new Promise((resolve) => setImmediate(resolve));
}

async function succeed(): Promise<void> {
	await settle();
	writes.at(-1)?.succeed();
	await settle();
}

describe("commits that wait at the same time", () => {
	it("share one write, each with its own revision", async () => {
		const commits = ["a", "b", "c"].map((name) => groups.commit([put(name)]));
		await succeed();
		const versions = (await Promise.all(commits)).map(({ version }) => version);
		expect(versions).toEqual(["1", "2", "3"]);
		expect(writes).toHaveLength(1);
		expect(writes[0]?.revision).toBe(3);
		expect(writes[0]?.rows.map(({ revision }) => revision)).toEqual([1, 2, 3]);
	});

	it("form the next write while one is in progress", async () => {
		const first = groups.commit([put("a")]);
		await settle();
		const rest = ["b", "c"].map((name) => groups.commit([put(name)]));
		await settle();
		expect(writes).toHaveLength(1);
		writes[0]?.succeed();
		await first;
		await succeed();
		await Promise.all(rest);
		expect(writes).toHaveLength(2);
		expect(writes[1]?.rows).toHaveLength(2);
	});

	it("are decided in order: of two that write one name, the second sees the first", async () => {
		const created = groups.commit([put("a")]);
		const conflict = groups.commit([put("a")]);
		const replaced = groups.commit([put("a", "1", "new")]);
		const outcomes = Promise.allSettled([created, conflict, replaced]);
		await succeed();
		expect(await outcomes).toMatchObject([
			{ status: "fulfilled", value: { version: "1" } },
			{ status: "rejected", reason: expect.any(CasFailure) },
			{ status: "fulfilled", value: { version: "2" } },
		]);
		expect(writes[0]?.rows).toHaveLength(1);
		expect(writes[0]?.rows[0]?.revision).toBe(2);
		const { id } = artist("a");
		expect(textOf(id && store.lookup(id))).toBe("new");
	});

	it("are decided again on what those before them leave, if they can be", async () => {
		const appended =
			(text: string): Rebase =>
			(stored) =>
				stored && [put("a", stored.version, textOf(stored) + text)];
		const commits = [
			groups.commit([put("a")]),
			groups.commit([put("a", "", "1")], { rebase: appended("1") }),
			groups.commit([put("a", "", "2")], { rebase: () => undefined }),
			groups.commit([put("a", "", "3")], {
				rebase: () => {
					throw new Error("not valid");
				},
			}),
			groups.commit([put("a", "0", "4")], { rebase: appended("4") }),
		];
		const outcomes = Promise.allSettled(commits);
		await succeed();
		expect(await outcomes).toMatchObject([
			{ status: "fulfilled", value: { version: "1" } },
			{ status: "fulfilled", value: { version: "2" } },
			{ status: "rejected", reason: expect.any(CasFailure) },
			{ status: "rejected", reason: new Error("not valid") },
			{ status: "fulfilled", value: { version: "3" } },
		]);
		expect(writes).toHaveLength(1);
		const { id } = artist("a");
		const stored = id && store.lookup(id);
		expect(textOf(stored)).toBe("14");
		const [row] = writes[0]?.rows ?? [];
		expect(row?.body && textOf(fromBinary(ResourceSchema, row.body))).toBe("14");
	});

	it("remove a row that one of them created and another deleted", async () => {
		const { id } = artist("a");
		const created = groups.commit([put("a")]);
		const deleted = id && groups.commit([{ op: "delete", id, expectedVersion: "1" }]);
		await succeed();
		expect((await created).version).toBe("1");
		expect((await deleted)?.version).toBe("2");
		expect(writes[0]?.rows).toMatchObject([{ revision: 2, body: undefined }]);
	});
});

describe("before a group is on disk", () => {
	it("nothing can be read, and no commit settles, not even a failed one", async () => {
		let settled = 0;
		const count = () => {
			settled += 1;
		};
		const commits = [groups.commit([put("a")]), groups.commit([put("a")]), groups.commit([])];
		for (const commit of commits) {
			commit.then(count, count);
		}
		await settle();
		expect(writes).toHaveLength(1);
		expect(settled).toBe(0);
		expect(store.size).toBe(0);
		await succeed();
		expect(settled).toBe(3);
		expect(store.size).toBe(1);
	});

	it("settled does not resolve either", async () => {
		const commit = groups.commit([put("a")]);
		let settled = false;
		const waiting = groups.settled().then(() => {
			settled = true;
		});
		await settle();
		expect(settled).toBe(false);
		await succeed();
		await commit;
		await waiting;
		expect(store.version).toBe("1");
	});
});

describe("a group that changes nothing", () => {
	it("is not written", async () => {
		expect((await groups.commit([])).version).toBe("");
		await expect(groups.commit([put("a", "7")])).rejects.toBeInstanceOf(CasFailure);
		expect(writes).toHaveLength(0);
	});
});

describe("a fence", () => {
	it("is checked with the group, not when the commit arrived", async () => {
		const first = groups.commit([put("a")]);
		await settle();
		const late = groups.commit([put("b")], { fence: { lease: "leader", token: "1" } });
		fenced = true;
		const outcome = expect(late).rejects.toBeInstanceOf(Fenced);
		await succeed();
		await first;
		await outcome;
	});
});

describe("a full disk", () => {
	it("fails the group and lets the next one succeed", async () => {
		const failed = expect(groups.commit([put("a")])).rejects.toBeInstanceOf(Exhausted);
		await settle();
		const next = groups.commit([put("a")]);
		writes[0]?.fail(new WriteFailure("database or disk is full", true));
		await failed;
		expect(store.size).toBe(0);
		await succeed();
		expect((await next).version).toBe("1");
		expect(broken).toEqual([]);
	});

	it("is logged once, and once more when it has room again", async () => {
		for (const name of ["a", "b"]) {
			const failed = expect(groups.commit([put(name)])).rejects.toBeInstanceOf(Exhausted);
			await settle();
			writes.at(-1)?.fail(new WriteFailure("database or disk is full", true));
			await failed;
		}
		for (const name of ["a", "b"]) {
			const commit = groups.commit([put(name)]);
			await succeed();
			await commit;
		}
		expect(logged).toEqual([
			[
				"the disk of the storage is full: commits are refused until it has space",
				{ why: "database or disk is full" },
			],
			["the disk of the storage has space again", { refused: 2 }],
		]);
	});
});

describe("a disk that fails", () => {
	it("fails all commits from then on, since its content is unknown", async () => {
		const failed = expect(groups.commit([put("a")])).rejects.toBeInstanceOf(StorageUnavailable);
		await settle();
		const waiting = expect(groups.commit([put("b")])).rejects.toBeInstanceOf(StorageUnavailable);
		writes[0]?.fail(new WriteFailure("disk I/O error", false));
		await failed;
		await waiting;
		await expect(groups.commit([put("c")])).rejects.toBeInstanceOf(StorageUnavailable);
		await groups.settled();
		expect(store.size).toBe(0);
		expect(writes).toHaveLength(1);
		expect(broken.map((error) => error.message)).toEqual([
			expect.stringContaining("the storage failed to write"),
		]);
		groups.break(new StorageUnavailable("again"));
		expect(broken).toHaveLength(1);
	});
});

describe("commits that wait", () => {
	it("are limited by their bytes, and one may always wait", async () => {
		const text = "x".repeat(8 * 1024 * 1024);
		const first = groups.commit([put("first")]);
		await settle();
		const waiting = Array.from({ length: 7 }, (_, index) =>
			groups.commit([put(`a${index}`, "", text)]),
		);
		const refused = groups.commit([put("refused", "", text)]);
		await expect(refused).rejects.toThrow(Exhausted);
		await expect(refused).rejects.toThrow("67108864");
		writes[0]?.succeed();
		await first;
		for (let group = 1; group <= 7; group++) {
			await settle();
			writes[group]?.succeed();
		}
		await Promise.all(waiting);
		const again = groups.commit([put("refused", "", text)]);
		await succeed();
		await again;
	});

	it("are limited by their number", async () => {
		const first = groups.commit([put("first")]);
		await settle();
		const waiting = Array.from({ length: 16_384 }, () => groups.commit([]));
		await expect(groups.commit([])).rejects.toThrow("16384 commits are already waiting");
		writes[0]?.succeed();
		await first;
		await Promise.all(waiting);
	});
});

describe("an exclusive action", () => {
	it("runs after earlier commits and before later ones", async () => {
		const order: string[] = [];
		const before = groups.commit([put("a")]).then(() => order.push("before"));
		await settle();
		const queued = groups.commit([put("b")]).then(() => order.push("queued"));
		const alone = groups.alone(async () => {
			expect(store.version).toBe("2");
			order.push("alone");
			return "done";
		});
		const after = groups.commit([put("c")]).then(() => order.push("after"));
		for (let step = 0; step < 4; step++) {
			await succeed();
		}
		expect(await alone).toBe("done");
		await Promise.all([before, queued, after]);
		expect(order).toHaveLength(4);
		expect(order.indexOf("alone")).toBeGreaterThan(order.indexOf("before"));
		expect(order.at(-1)).toBe("after");
	});

	it("fails by itself, or with the storage", async () => {
		const failing = groups.alone(() => Promise.reject(new RangeError("its own")));
		await expect(failing).rejects.toThrow("its own");
		const commit = expect(groups.commit([put("a")])).rejects.toBeInstanceOf(StorageUnavailable);
		const waiting = expect(groups.alone(async () => {})).rejects.toBeInstanceOf(StorageUnavailable);
		await settle();
		writes[0]?.fail(new WriteFailure("disk I/O error", false));
		await commit;
		await waiting;
		await expect(groups.alone(async () => {})).rejects.toBeInstanceOf(StorageUnavailable);
	});
});

describe("the measurements of a group", () => {
	it("are the number of commits, the wait of the first, and the time of the disk", async () => {
		const first = groups.commit([put("a")]);
		await settle();
		await clock.advance(5);
		const second = groups.commit([put("b")]);
		await clock.advance(3);
		const third = groups.commit([put("c")]);
		const refused = groups.commit([put("c")]).catch((failure: unknown) => failure);
		await clock.advance(2);
		writes.at(-1)?.succeed();
		await first;
		await settle();
		await clock.advance(7);
		writes.at(-1)?.succeed();
		await Promise.all([second, third]);
		expect(await refused).toBeInstanceOf(CasFailure);
		expect(batches).toEqual([
			{ commits: 1, longestWaitMs: 0, writeMs: 10 },
			{ commits: 2, longestWaitMs: 5, writeMs: 7 },
		]);
	});

	it("exclude commits that are not written", async () => {
		await groups.settled();
		const failed = groups.commit([put("a")]).catch((failure: unknown) => failure);
		await settle();
		writes.at(-1)?.fail(new WriteFailure("no room", true));
		expect(await failed).toBeInstanceOf(Exhausted);
		expect(batches).toEqual([]);
	});
});
