import { create } from "@bufbuild/protobuf";
import { ResourceSchema } from "@plinth/proto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { VersionCompacted, WatchClosed } from "../errors.ts";
import { EventLog, LogEntry } from "./event-log.ts";

const resource = create(ResourceSchema);

/** The events that a cursor at that entry still receives. */
function rest(log: EventLog, from: LogEntry): readonly LogEntry[] {
	log.assertContinuous(from);
	const entries: LogEntry[] = [];
	for (let entry = from.next; entry !== undefined; entry = entry.next) {
		entries.push(entry);
	}
	return entries;
}

describe("EventLog", () => {
	it("finds the position of every revision in the log, and refuses all others", () => {
		fc.assert(
			fc.property(
				fc.nat(50),
				fc.integer({ min: 1, max: 1200 }),
				// How far each revision is from the one before it, and how many events it has.
				fc.array(fc.tuple(fc.integer({ min: 1, max: 3 }), fc.integer({ min: 1, max: 6 })), {
					minLength: 1,
					maxLength: 700,
					size: "max",
				}),
				(start, logEvents, revisions) => {
					const log = new EventLog(start, { logEvents, logBytes: Number.POSITIVE_INFINITY });
					const all: LogEntry[] = [];
					let revision = start;
					for (const [distance, events] of revisions) {
						revision += distance;
						for (let count = 0; count < events; count++) {
							const entry = new LogEntry(revision, "upsert", resource, undefined);
							log.append(entry);
							all.push(entry);
						}
						log.trim();
					}
					const kept = all.slice(Math.max(0, all.length - logEvents));
					expect(log.events).toBe(kept.length);
					const dropped = all[all.length - kept.length - 1];
					const floor = dropped?.revision ?? start;
					for (let asked = start; asked <= revision; asked++) {
						if (asked < floor) {
							expect(() => log.after(asked)).toThrow(VersionCompacted);
							continue;
						}
						const first = kept.findIndex((entry) => entry.revision > asked);
						const expected = first === -1 ? [] : kept.slice(first);
						const found = rest(log, log.after(asked));
						expect(found.length).toBe(expected.length);
						expect(found[0]).toBe(expected[0]);
					}
				},
			),
			{ numRuns: 15 },
		);
	});

	it("cuts a cursor off when an entry after it is dropped, and retains nothing for it", () => {
		const log = new EventLog(0, { logEvents: 2, logBytes: Number.POSITIVE_INFINITY });
		const start = log.tail;
		const entries = [1, 2, 3].map(
			(revision) => new LogEntry(revision, "upsert", resource, undefined),
		);
		const [first, second, third] = entries;
		for (const entry of entries) {
			log.append(entry);
			log.trim();
		}
		expect(() => log.assertContinuous(start)).toThrow(WatchClosed);
		expect(start.next).toBeUndefined();
		expect(first && rest(log, first)).toEqual([second, third]);
	});

	it("counts the bytes that only the log retains", () => {
		const large = create(ResourceSchema, { metadata: { text: "x".repeat(1000) } });
		const log = new EventLog(0, { logEvents: 100, logBytes: 6000 });
		for (let revision = 1; revision <= 10; revision++) {
			log.append(new LogEntry(revision, "upsert", large, undefined));
			log.trim();
		}
		expect(log.events).toBe(10);
		for (let revision = 11; revision <= 14; revision++) {
			log.append(new LogEntry(revision, "upsert", large, large));
			log.trim();
		}
		expect(log.events).toBe(2);
	});
});
