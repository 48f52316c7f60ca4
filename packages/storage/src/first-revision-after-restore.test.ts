import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { firstRevisionAfterRestore } from "./first-revision-after-restore.ts";

/** A part of the life of a storage and of its backups. */
type Event =
	| { readonly kind: "commits"; readonly ms: number; readonly perMs: number }
	| { readonly kind: "backup" }
	/** From the n-th backup, replacing the storage or after losing it. */
	| { readonly kind: "restore"; readonly of: number; readonly lost: boolean };

const events: fc.Arbitrary<Event> = fc.oneof(
	fc.record({
		kind: fc.constant("commits" as const),
		ms: fc.integer({ min: 1, max: 100_000_000 }),
		perMs: fc.integer({ min: 0, max: 1024 }),
	}),
	fc.record({ kind: fc.constant("backup" as const) }),
	fc.record({ kind: fc.constant("restore" as const), of: fc.nat(), lost: fc.boolean() }),
);

describe("the revision of a restored storage", () => {
	it("is greater than any ever issued, whatever was lost, at up to 1,024 commits a millisecond", () => {
		fc.assert(
			fc.property(fc.array(events, { maxLength: 40 }), (story) => {
				let nowMs = Date.UTC(2026, 0, 1);
				let revision = 0;
				let newest = 0;
				const backups = [0];
				for (const event of story) {
					if (event.kind === "commits") {
						nowMs += event.ms;
						revision += event.ms * event.perMs;
					} else if (event.kind === "backup") {
						backups.push(revision);
					} else {
						// A restore takes longer than a second of the clock is worth of reserve.
						nowMs += 1025;
						const from = backups[event.of % backups.length] ?? 0;
						const raised = firstRevisionAfterRestore(nowMs, event.lost ? [from] : [from, revision]);
						expect(raised).toBeGreaterThan(newest);
						revision = raised ?? 0;
					}
					newest = Math.max(newest, revision);
				}
			}),
		);
	});

	it("is undefined if the clock is so far ahead that revisions would run out", () => {
		expect(firstRevisionAfterRestore(Date.UTC(2200, 0, 1), [])).toBeDefined();
		expect(firstRevisionAfterRestore(Date.UTC(2300, 0, 1), [])).toBeUndefined();
	});
});
