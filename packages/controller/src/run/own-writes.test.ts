import { FakeClock } from "@plinth/runtime/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { compareVersions } from "./compare-versions.ts";
import { OwnWrites } from "./own-writes.ts";

const families = ["a", "b"] as const;

describe("compareVersions", () => {
	it("orders decimal numbers of any length", () => {
		const version = fc.bigInt({ min: 0n, max: 10n ** 30n });
		fc.assert(
			fc.property(version, version, (a, b) => {
				const expected = a < b ? -1 : a > b ? 1 : 0;
				expect(Math.sign(compareVersions(`${a}`, `${b}`))).toBe(expected);
			}),
		);
		expect(compareVersions("", "0")).toBeLessThan(0);
	});
});

describe("OwnWrites", () => {
	const key = fc.constantFrom("x", "y", "z");
	const family = fc.constantFrom(...families);
	const command = fc.oneof(
		fc.record({ do: fc.constant("commit" as const), key, family }),
		fc.record({ do: fc.constant("foreign" as const), family }),
		fc.record({ do: fc.constant("ack" as const), at: fc.nat(20) }),
		fc.record({ do: fc.constant("deliver" as const), family, count: fc.nat(3) }),
		fc.record({ do: fc.constant("ask" as const), key }),
		fc.record({ do: fc.constant("restart" as const) }),
	);

	/**
	 * The model: a log of commits, how far each family's cache has come, and which commits were
	 * acknowledged for which key. A key may go on exactly when nothing acknowledged for it is
	 * missing from the caches.
	 */
	it("holds a key back exactly while an acknowledged write of it is not cached", () => {
		fc.assert(
			fc.property(fc.array(command, { maxLength: 100 }), (commands) => {
				const woken: string[] = [];
				const ownWrites = new OwnWrites({
					clock: new FakeClock(),
					limitMs: Number.POSITIVE_INFINITY,
					onCaughtUp: (caughtUp) => woken.push(caughtUp),
					onLimit: () => {},
				});
				let revision = 0;
				const seen = { a: 0, b: 0 };
				const unacknowledged: { key: string; family: "a" | "b"; version: number }[] = [];
				const acknowledged: typeof unacknowledged = [];
				const logs = { a: [] as number[], b: [] as number[] };
				const asleep = new Set<string>();
				const isBehind = (asked: string) =>
					acknowledged.some((each) => each.key === asked && each.version > seen[each.family]);
				ownWrites.restart(families);
				for (const each of families) {
					ownWrites.advance(each, "0");
				}
				for (const step of commands) {
					switch (step.do) {
						case "commit":
							revision += 1;
							logs[step.family].push(revision);
							unacknowledged.push({ key: step.key, family: step.family, version: revision });
							break;
						case "foreign":
							revision += 1;
							logs[step.family].push(revision);
							break;
						case "ack": {
							const [write] = unacknowledged.splice(
								step.at % Math.max(1, unacknowledged.length),
								1,
							);
							if (write !== undefined) {
								acknowledged.push(write);
								ownWrites.note(write.key, write.family, `${write.version}`);
							}
							break;
						}
						case "deliver":
							for (let events = 0; events < step.count; events++) {
								const next = logs[step.family].shift();
								if (next !== undefined) {
									seen[step.family] = next;
									ownWrites.advance(step.family, `${next}`);
								}
							}
							break;
						case "ask":
							expect(ownWrites.mustWait(step.key)).toBe(isBehind(step.key));
							if (isBehind(step.key)) {
								asleep.add(step.key);
							}
							break;
						case "restart":
							ownWrites.restart(families);
							asleep.clear();
							for (const each of families) {
								logs[each] = [];
								seen[each] = revision;
								ownWrites.advance(each, `${revision}`);
							}
							break;
					}
					for (const awake of woken.splice(0)) {
						expect(asleep.delete(awake)).toBe(true);
						expect(isBehind(awake)).toBe(false);
					}
					for (const sleeper of asleep) {
						expect(isBehind(sleeper)).toBe(true);
					}
					expect(ownWrites.metrics().waiting).toBe(asleep.size);
				}
			}),
			{ numRuns: 2000 },
		);
	});
});
