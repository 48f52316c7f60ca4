import { describe, expect, it } from "vitest";
import {
	type History,
	problemsOf,
	type Read,
	type SentEvent,
	type Write,
} from "./check-history.fixture.ts";

const keys = ["a", "b"];
const servers = [0, 1, 2];

/** A correct history: consecutive writes, each sent to all watches and read on all servers. */
function faultless(): { writes: Write[]; reads: Read[]; watches: SentEvent[][] } {
	const writes: Write[] = [];
	const reads: Read[] = [];
	const sent: SentEvent[] = [];
	const current = new Map<string, number>();
	for (let step = 1; step <= 20; step++) {
		const key = keys[step % 2] ?? "";
		const expected = current.get(key) ?? 0;
		const [startMs, text] = [step * 10, `text-${step}`];
		writes.push({ key, text, expected, startMs, endMs: startMs + 2, version: step, failed: false });
		const failed = { key, expected, startMs, endMs: startMs + 3, failed: true };
		writes.push({ ...failed, text: `failed-${step}` });
		sent.push({ key, version: step, text, replaced: expected });
		current.set(key, step);
		for (const server of servers) {
			for (const strong of [true, false]) {
				reads.push({
					key,
					version: step,
					text,
					server,
					strong,
					startMs: startMs + 4,
					endMs: startMs + 5,
				});
			}
		}
	}
	return { writes, reads, watches: servers.map(() => [...sent]) };
}

function planted(change: (history: ReturnType<typeof faultless>) => void): readonly string[] {
	const history = faultless();
	change(history);
	return problemsOf(history satisfies History);
}

describe("the check of histories", () => {
	it("finds nothing in a correct history", () => {
		expect(planted(() => {})).toEqual([]);
	});

	it("accepts a write that nobody knows about, there or not", () => {
		const unknown = { key: "a", expected: 1, startMs: 1, endMs: 500, failed: false };
		expect(
			planted(({ writes }) => {
				const index = writes.findIndex(({ text }) => text === "text-20");
				const { version: _, ...rest } = writes[index] as Write;
				writes[index] = rest;
				writes.push({ ...unknown, text: "never-landed" });
			}),
		).toEqual([]);
	});

	const faults: readonly (readonly [string, (history: ReturnType<typeof faultless>) => void])[] = [
		["a dropped event", ({ watches }) => watches[1]?.splice(7, 1)],
		["a dropped event at the end", ({ watches }) => watches[1]?.pop()],
		[
			"an event that all watches lack",
			({ watches }) => {
				for (const watch of watches) {
					watch.splice(7, 1);
				}
			},
		],
		["a doubled event", ({ watches }) => watches[1]?.splice(7, 0, watches[1][7] as SentEvent)],
		[
			"swapped events",
			({ watches }) => {
				const watch = watches[1] ?? [];
				watch.splice(7, 2, watch[8] as SentEvent, watch[7] as SentEvent);
			},
		],
		[
			"a stale strong read",
			({ reads }) => {
				const read = reads.find(({ strong, version }) => strong && version === 20);
				reads.push({ ...(read as Read), version: 18, text: "text-18", startMs: 400, endMs: 401 });
			},
		],
		[
			"a stale eventual read",
			({ reads }) => {
				const read = { key: "a", server: 1, strong: false, startMs: 400, endMs: 401 };
				reads.push({ ...read, version: 2, text: "text-2" });
			},
		],
		[
			"a read of what was never written",
			({ reads }) => {
				const read = { key: "a", server: 1, strong: false, startMs: 400, endMs: 401 };
				reads.push({ ...read, version: 99, text: "invented" });
			},
		],
		[
			"a lost write",
			({ watches, reads }) => {
				for (const watch of watches) {
					watch.pop();
				}
				reads.splice(-6);
			},
		],
		[
			"a failed write that is there",
			({ writes }) => {
				const index = writes.findIndex(({ text }) => text === "text-20");
				const { version: _, ...rest } = writes[index] as Write;
				writes[index] = { ...rest, failed: true };
			},
		],
	];
	it.each(faults)("finds %s", (_, plant) => {
		expect(planted(plant)).not.toEqual([]);
	});
});
