import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { artist, happened } from "./events.fixture.ts";
import { type ChangedRow, defaultEventLimits, OwnEvents } from "./own-events.ts";
import type { RecordedEvent } from "./recorded-event.ts";

const limits = { ...defaultEventLimits, events: 20, perResource: 4, retentionMs: 1_000 };

function ownEvents(overrides: Partial<typeof limits> = {}): OwnEvents {
	let ids = 0;
	return new OwnEvents({ ...limits, ...overrides }, "s1", () => `${++ids}`);
}

const reasons = (events: Iterable<RecordedEvent>) => [...events].map(({ reason }) => reason);
const milesKey = "demo.Artist/default/default/miles";

describe("own events", () => {
	it("count an event that occurs again, and keep its newest message", () => {
		const own = ownEvents();
		own.record(happened("miles", { message: "first" }), 1);
		own.record(happened("miles", { message: "second" }), 5);
		expect([...own.all()]).toMatchObject([
			{ id: "1", count: 2, message: "second", firstMs: 1, lastMs: 5, server: "s1" },
		]);
	});

	it("tell sources, severities, reasons and incarnations apart", () => {
		const own = ownEvents({ perResource: 32 });
		own.record(happened("miles"), 1);
		own.record(happened("miles", { source: "other" }), 1);
		own.record(happened("miles", { severity: "warning" }), 1);
		own.record(happened("miles", { reason: "Canceled" }), 1);
		own.record(happened("miles", { resource: artist("miles", "another") }), 1);
		expect(own.size).toBe(5);
	});

	it("drop the event of a resource that has occurred longest ago", () => {
		const own = ownEvents();
		for (const reason of ["A", "B", "C", "D", "A", "E"]) {
			own.record(happened("miles", { reason }), 1);
		}
		expect(reasons(own.of(milesKey))).toEqual(["C", "D", "A", "E"]);
	});

	it("drop events of the resource that has changed longest ago", () => {
		const own = ownEvents({ events: 3 });
		for (const name of ["a", "b", "a", "c", "d"]) {
			own.record(happened(name), 1);
		}
		expect([...own.all()].map(({ resource }) => resource.name)).toEqual(["a", "c", "d"]);
	});

	it("cut long messages, and make them well-formed", () => {
		const own = ownEvents({ messageLength: 10 });
		own.record(happened("miles", { message: "x".repeat(11) }), 1);
		own.record(happened("trane", { message: "\ud800" }), 1);
		own.record(happened("monk", { message: `${"x".repeat(8)}😀😀` }), 1);
		expect([...own.all()].map(({ message }) => message)).toEqual([
			"xxxxxxxxx…",
			"\ufffd",
			`${"x".repeat(8)}\ufffd…`,
		]);
	});

	it("leave nothing behind of what was dropped before it was stored", () => {
		const own = ownEvents({ events: 10 });
		for (let n = 0; n < 1_000; n++) {
			own.record(happened(`a${n}`), 1);
		}
		expect(own.changes).toBe(10);
	});

	it("continue the events of an earlier process", () => {
		const earlier = ownEvents();
		earlier.record(happened("miles", { message: "before" }), 900);
		earlier.record(happened("miles", { reason: "Old" }), 1);
		const [row] = earlier.takeChanged(1, 1);
		const own = ownEvents();
		own.record(happened("miles", { message: "after" }), 1_500);
		own.adoptAll([{ key: milesKey, events: row?.events ?? [] }], 1_500);
		expect([...own.all()]).toMatchObject([
			{ id: "1", count: 2, message: "after", firstMs: 900, lastMs: 1_500 },
		]);
		expect(own.size).toBe(1);
	});

	it("remove the row of an earlier process whose events are all too old", () => {
		const own = ownEvents();
		const earlier = ownEvents();
		earlier.record(happened("miles"), 1);
		own.adoptAll(earlier.takeChanged(1, 1), 5_000);
		expect(own.takeChanged(9, 5_000)).toEqual([{ key: milesKey, events: [] }]);
		expect(own.size).toBe(0);
	});

	it("keep their limits, and end up stored as they are, whatever is recorded, fails and expires", () => {
		const step = fc.oneof(
			{
				weight: 6,
				arbitrary: fc.record({
					kind: fc.constant("record" as const),
					name: fc.integer({ min: 0, max: 11 }),
					reason: fc.constantFrom("A", "B", "C", "D", "E", "F"),
				}),
			},
			{
				weight: 2,
				arbitrary: fc.record({
					kind: fc.constant("store" as const),
					limit: fc.integer({ min: 1, max: 5 }),
					outcome: fc.constantFrom("done", "not done", "done, and reported as failed"),
				}),
			},
			{
				weight: 1,
				arbitrary: fc.record({
					kind: fc.constant("wait" as const),
					ms: fc.integer({ min: 0, max: 800 }),
				}),
			},
		);
		fc.assert(
			fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
				const own = ownEvents();
				const stored = new Map<string, readonly string[]>();
				let nowMs = 0;
				const store = (rows: readonly ChangedRow[]) => {
					for (const { key, events } of rows) {
						if (events.length === 0) {
							stored.delete(key);
						} else {
							stored.set(key, events.map(shown));
						}
					}
				};
				for (const each of steps) {
					switch (each.kind) {
						case "record": {
							const event = own.record(happened(`a${each.name}`, { reason: each.reason }), nowMs);
							expect([...own.all()]).toContain(event);
							break;
						}
						case "store": {
							const rows = own.takeChanged(each.limit, nowMs);
							if (each.outcome !== "not done") {
								store(rows);
							}
							if (each.outcome !== "done") {
								own.failed(rows);
							}
							break;
						}
						case "wait":
							nowMs += each.ms;
							own.expire(nowMs);
							break;
					}
					const all = [...own.all()];
					expect(own.size).toBe(all.length);
					expect(own.size).toBeLessThanOrEqual(limits.events);
					expect(all.every(({ lastMs }) => lastMs > nowMs - limits.retentionMs)).toBe(true);
				}
				own.storeCounts();
				while (own.hasChanges) {
					store(own.takeChanged(3, nowMs));
				}
				const expected = new Map<string, string[]>();
				for (const event of own.all()) {
					const key = `demo.Artist/default/default/${event.resource.name}`;
					expected.set(key, [...(expected.get(key) ?? []), shown(event)]);
				}
				expect(stored).toEqual(expected);
				for (const events of expected.values()) {
					expect(events.length).toBeLessThanOrEqual(limits.perResource);
				}
			}),
		);
	});
});

const shown = ({ id, count, lastMs }: RecordedEvent) => `${id} ${count} ${lastMs}`;
