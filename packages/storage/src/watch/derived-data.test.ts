import { create } from "@bufbuild/protobuf";
import { ResourceSchema } from "@plinth/proto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { DerivedData } from "./derived-data.ts";
import { EventLog, LogEntry } from "./event-log.ts";

const resource = create(ResourceSchema);
const logBytes = 64_000;

/** A log whose retained bytes are counted as the budget of a storage counts them. */
function countedLog({ logEvents = 1_000, budget = Number.POSITIVE_INFINITY } = {}) {
	const counted = { bytes: 0 };
	const log = new EventLog(
		0,
		{ logEvents, logBytes },
		{
			changed: (bytes) => {
				counted.bytes += bytes;
			},
			get hasRoom() {
				return counted.bytes <= budget;
			},
			dropped() {},
		},
	);
	let revision = 0;
	const append = () => {
		revision += 1;
		const entry = new LogEntry(revision, "upsert", resource, undefined);
		log.append(entry);
		log.trim();
		return entry;
	};
	return { log, counted, append };
}

function derivedOf(entry: LogEntry): DerivedData {
	const { last } = entry;
	if (last.kind !== "upsert" || last.derived === undefined) {
		throw new Error("an event of a log has derived data");
	}
	return last.derived;
}

describe("what is derived from an event", () => {
	it("is kept under one key for all watches, and counts until the log drops the event", () => {
		const { log, counted, append } = countedLog({ logEvents: 2 });
		const entry = append();
		const data = derivedOf(entry);
		const { key } = data;
		expect(entry.inner).toMatchObject({ derived: data });
		const before = log.bytes;
		data.retain(500);
		data.retain(250);
		expect([log.bytes, counted.bytes, data.key === key]).toEqual([
			before + 750,
			before + 750,
			true,
		]);
		append();
		append();
		expect(log.bytes).toBe(2 * before);
		expect(counted.bytes).toBe(log.bytes);
		expect(data.key).not.toBe(key);
		data.retain(1_000);
		expect(counted.bytes).toBe(2 * before);
	});

	it("is dropped, the oldest first, above an eighth of the log, and events are not", () => {
		const { log, append } = countedLog();
		const all = Array.from({ length: 4 }, () => derivedOf(append()));
		const before = log.bytes;
		const keys = all.map(({ key }) => key);
		for (const data of all) {
			data.retain(logBytes / 8 / 2);
		}
		expect(all.map(({ key }, index) => key === keys[index])).toEqual([false, false, true, true]);
		expect([log.events, log.bytes - before]).toEqual([4, logBytes / 8]);
	});

	it("is not kept beyond the budget of the storage", () => {
		const { log, counted, append } = countedLog({ budget: 1_000 });
		const [first, second] = [derivedOf(append()), derivedOf(append())];
		const before = log.bytes;
		const { key } = first;
		first.retain(300);
		expect([first.key === key, counted.bytes]).toEqual([true, before + 300]);
		second.retain(2_000);
		expect([first.key === key, counted.bytes]).toEqual([false, before]);
	});

	it("adds up, whatever is appended, derived and dropped", () => {
		const step = fc.oneof(
			fc.constant("append" as const),
			fc.record({ entry: fc.nat(40), bytes: fc.nat(3_000) }),
		);
		fc.assert(
			fc.property(fc.array(step, { maxLength: 120 }), (steps) => {
				const { log, counted, append } = countedLog({ logEvents: 20, budget: 20_000 });
				const entries: LogEntry[] = [];
				const kept = new Map<object, number>();
				for (const each of steps) {
					if (each === "append") {
						entries.push(append());
						continue;
					}
					const entry = entries[each.entry];
					if (entry !== undefined) {
						const data = derivedOf(entry);
						kept.set(data.key, (kept.get(data.key) ?? 0) + each.bytes);
						data.retain(each.bytes);
					}
				}
				const inLog = entries.slice(-log.events);
				const derivedBytes = inLog
					.map((entry) => kept.get(derivedOf(entry).key) ?? 0)
					.reduce((sum, bytes) => sum + bytes, 0);
				const entryBytes = inLog.reduce((sum, { bytes }) => sum + bytes, 0);
				expect(log.bytes).toBe(entryBytes + derivedBytes);
				expect(counted.bytes).toBe(log.bytes);
				expect(derivedBytes).toBeLessThanOrEqual(logBytes / 8);
			}),
		);
	});
});
