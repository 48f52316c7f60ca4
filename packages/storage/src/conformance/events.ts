import assert from "node:assert/strict";
import { type EventRow, type EventStorage, maxEventBytes, maxEventRows } from "../event-storage.ts";
import type { TestRunner } from "./describe-conformance.ts";

/** A storage of events without rows. */
export interface EventHarness {
	readonly storage: EventStorage;
	/** Another server's access to the same rows, if servers can share them. */
	readonly other?: EventStorage;
	/** Opens the storage again, as a restarted server does. */
	reopen(): Promise<EventStorage>;
	dispose(): Promise<void>;
}

const hour = { ttlMs: 3_600_000 };

const behaviors: readonly { name: string; run: (harness: EventHarness) => Promise<void> }[] = [
	{
		name: "is empty at first",
		run: async ({ storage }) => assert.deepEqual(await stored(storage), {}),
	},
	{
		name: "replaces and removes rows, and keeps the others",
		async run({ storage }) {
			await storage.write([row("a", "1"), row("b", "2"), row("c", "3")], hour);
			await storage.write([row("a", "4"), row("b"), row("missing")], hour);
			assert.deepEqual(await stored(storage), { a: "4", c: "3" });
		},
	},
	{
		name: "keeps keys that have slashes, zeros and other alphabets apart",
		async run({ storage }) {
			const keys = ["a", "a/", "a/b", "a\0b", "ä", "😀", "a/b/".repeat(400)];
			await storage.write(
				keys.map((key, index) => row(key, `${index}`)),
				hour,
			);
			const expected = Object.fromEntries(keys.map((key, index) => [key, `${index}`]));
			assert.deepEqual(await stored(storage), expected);
		},
	},
	{
		name: "has its rows after a restart",
		async run({ storage, reopen }) {
			await storage.write([row("a", "1"), row("b", "2")], hour);
			await storage.write([row("b")], hour);
			assert.deepEqual(await stored(await reopen()), { a: "1" });
		},
	},
	{
		name: "takes the largest write",
		async run({ storage }) {
			const body = "x".repeat(Math.floor(maxEventBytes / maxEventRows));
			const rows = Array.from({ length: maxEventRows }, (_, index) => row(`row-${index}`, body));
			await storage.write(rows, hour);
			assert.equal(Object.keys(await stored(storage)).length, maxEventRows);
		},
	},
	{
		name: "takes an empty write, and an empty body",
		async run({ storage }) {
			await storage.write([], hour);
			await storage.write([row("a", "")], hour);
			assert.deepEqual(await stored(storage), { a: "" });
		},
	},
	{
		name: "sends what another server writes and removes",
		async run({ storage, other }) {
			if (other === undefined) {
				return;
			}
			await storage.write([row("a", "1"), row("b", "2")], hour);
			const end = new AbortController();
			const rows = new Map<string, string>();
			const following = (async () => {
				for await (const changes of other.follow(end.signal)) {
					apply(rows, changes);
				}
			})().catch(() => undefined);
			await until(() => rows.size === 2);
			await storage.write([row("a"), row("c", "3")], hour);
			await until(() => rows.size === 2 && rows.has("c"));
			assert.deepEqual(Object.fromEntries(rows), { b: "2", c: "3" });
			end.abort();
			await following;
		},
	},
	{
		name: "ends with the reason of the signal",
		async run({ storage }) {
			const end = new AbortController();
			const reason = new Error("enough");
			const following = (async () => {
				for await (const _ of storage.follow(end.signal)) {
					end.abort(reason);
				}
			})();
			await assert.rejects(following, reason);
		},
	},
];

/** Declares a test for each behavior, against a storage of events that the factory makes for it. */
export function describeEventConformance(
	name: string,
	factory: () => Promise<EventHarness>,
	{ describe, it }: Pick<TestRunner, "describe" | "it">,
): void {
	describe(`${name} conforms`, () => {
		for (const { name: behavior, run } of behaviors) {
			it(behavior, async () => {
				const harness = await factory();
				try {
					await run(harness);
				} finally {
					await harness.dispose();
				}
			});
		}
	});
}

function row(key: string, body?: string): EventRow {
	return { key, body: body === undefined ? undefined : new TextEncoder().encode(body) };
}

function apply(rows: Map<string, string>, changes: readonly EventRow[]): void {
	for (const { key, body } of changes) {
		if (body === undefined) {
			rows.delete(key);
		} else {
			rows.set(key, new TextDecoder().decode(body));
		}
	}
}

/** The rows that are stored now. */
async function stored(storage: EventStorage): Promise<Record<string, string>> {
	const rows = new Map<string, string>();
	for await (const changes of storage.follow(new AbortController().signal)) {
		apply(rows, changes);
		break;
	}
	return Object.fromEntries(rows);
}

async function until(condition: () => boolean): Promise<void> {
	while (!condition()) {
		await new Promise((resolve) => setTimeout(resolve, 5));
	}
}
