import type { Resource } from "@plinth/proto";
import { systemRandom } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { idFor, resource, textOf } from "../conformance/test-resources.ts";
import { defaultStorageLimits } from "../limits.ts";
import { StateStore } from "./state-store.ts";

/** What happens to a name: it is written, or deleted if it exists. */
type Step = "write" | "delete" | "other";

describe("a history", () => {
	it("has all versions since the begin of the log, whatever is written and dropped while it is read", async () => {
		await fc.assert(
			fc.asyncProperty(
				fc.integer({ min: 1, max: 9_000 }),
				// What happens before the read and in each turn of it: how many events of others follow each step.
				fc.array(
					fc.array(fc.tuple(fc.constantFrom<Step>("write", "delete", "other"), fc.nat(900)), {
						maxLength: 8,
					}),
					{ minLength: 1, maxLength: 8 },
				),
				async (logEvents, turns) => {
					const model: string[] = [];
					const pending = [...turns];
					const scheduler = {
						schedule: (task: () => void) => queueMicrotask(task),
						turn: async () => run(pending.shift() ?? []),
					};
					const clock = new FakeClock();
					const limits = { ...defaultStorageLimits, logEvents };
					const store = new StateStore({ clock, random: systemRandom, scheduler }, limits);
					let count = 0;
					const put = (name: string) => {
						count += 1;
						const version = String(store.revision + 1);
						const put = { ...resource(name, { text: `${count}` }), version };
						store.apply(store.revision + 1, [{ op: "put", resource: put }]);
						return put;
					};
					const run = (steps: readonly (readonly [Step, number])[]) => {
						for (const [step, others] of steps) {
							const stored: Resource | undefined = store.lookup(idFor("a"));
							if (step === "write") {
								const { version } = put("a");
								model.push(`${stored === undefined ? "created" : "updated"} ${version}`);
							} else if (step === "delete" && stored !== undefined) {
								store.apply(store.revision + 1, [{ op: "delete", resource: stored }]);
								model.push(`deleted ${store.revision}`);
							}
							for (let other = 0; other < others; other++) {
								put("b");
							}
						}
					};
					run(pending.shift() ?? []);
					const { versions, sinceVersion } = await store.history(
						idFor("a"),
						new AbortController().signal,
					);
					const shown = versions.map(({ change, version }) => `${change} ${version}`);
					const newestFirst = model.toReversed();
					const known = shown.filter((each) => !each.startsWith("unknown"));
					expect(known).toEqual(newestFirst.slice(0, known.length));
					// Nothing that was written since is missing, and at most one version before is there.
					const since = Number(sinceVersion);
					const expected = newestFirst.filter((each) => Number(each.split(" ")[1]) > since);
					expect(known.length).toBeGreaterThanOrEqual(expected.length);
					const first = versions.at(-1);
					if (first?.change === "unknown") {
						const [, version] = newestFirst[known.length]?.split(" ") ?? [];
						expect(first.version).toBe(version);
						expect(Number(version)).toBeLessThanOrEqual(since);
						expect(textOf(first.resource)).not.toBe("");
					}
				},
			),
			{ numRuns: 40 },
		);
	});

	it("ends although more is written in each turn than a turn reads", async () => {
		let turns = 0;
		const turn = async () => {
			turns += 1;
			expect(turns).toBeLessThan(10);
			write(3_000);
		};
		const scheduler = { schedule: (task: () => void) => queueMicrotask(task), turn };
		const limits = { ...defaultStorageLimits, logEvents: 9_000 };
		const runtime = { clock: new FakeClock(), random: systemRandom, scheduler };
		const store = new StateStore(runtime, limits);
		const write = (count: number) => {
			for (let left = count; left > 0; left--) {
				const revision = store.revision + 1;
				const put = { ...resource(left === 1 ? "a" : "b"), version: String(revision) };
				store.apply(revision, [{ op: "put", resource: put }]);
			}
		};
		write(9_000);
		const { versions } = await store.history(idFor("a"), new AbortController().signal);
		expect(versions[0]?.version).toBe(store.version);
	});
});
