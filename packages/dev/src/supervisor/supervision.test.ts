import { seededRandom } from "@plinth/runtime/testing";
import { forEachSeed } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { supervise } from "./supervision.ts";
import { type Quality, World } from "./world.fixture.ts";

const qualities: readonly Quality[] = [
	...(["serves", "serves", "not-loaded", "not-started", "exits-at-import"] as const),
];

/** Runs random saves, faults and steps of children in a random order, and returns what is wrong. */
function simulate(seed: number, transitions: typeof supervise): readonly string[] {
	const random = seededRandom(seed);
	const world = new World(transitions);
	const pick = <Value>(values: readonly Value[]) =>
		values[Math.floor(random.next() * values.length)];
	const drain = () => {
		for (let step = pick(world.steps()); step !== undefined; step = pick(world.steps())) {
			step();
		}
	};
	world.save("serves", random.next() < 0.5);
	for (let count = 0; count < 60; count++) {
		const chance = random.next();
		if (chance < 0.25) {
			world.save(pick(qualities) ?? "serves", random.next() < 0.3);
		} else if (chance < 0.32) {
			pick(world.faults())?.();
		} else {
			pick(world.steps())?.();
		}
	}
	drain();
	const before = world.served;
	world.save(pick(["not-loaded", "exits-at-import"]) ?? "not-loaded", random.next() < 0.3);
	drain();
	const problems = [...world.violations];
	if (world.served !== before) {
		problems.push("code that can't be loaded has ended the server");
	}
	world.save("serves", random.next() < 0.3);
	for (let count = Math.floor(random.next() * 6); count > 0; count--) {
		pick(world.steps())?.();
	}
	world.save("serves", random.next() < 0.3);
	drain();
	if (world.served !== world.version) {
		problems.push("the newest version does not serve");
	}
	if (random.next() < 0.5) {
		world.save("serves", random.next() < 0.3);
	}
	world.end(false);
	if (random.next() < 0.3) {
		world.end(true);
	}
	drain();
	if (!world.hasEnded) {
		problems.push("has not ended");
	}
	return [...new Set([...problems, ...world.violations])];
}

describe("a supervisor", () => {
	it("keeps its promises whatever happens in whatever order", async () => {
		await forEachSeed(300, async (seed) => {
			expect(simulate(seed, supervise)).toEqual([]);
		});
	});

	it.each<[string, string, typeof supervise]>([
		[
			"the new server is told to serve before the old one has exited",
			"two children hold the data",
			(before, event) => {
				const [state, effects] = supervise(before, event);
				const isEarly = event.kind === "loaded" && before.holder !== undefined;
				return [state, isEarly ? [...effects, { kind: "serve", id: event.id }] : effects];
			},
		],
		[
			"the old server is stopped when files change",
			"stops a child before the next one is loaded",
			(before, event) => {
				const [state, effects] = supervise(before, event);
				return event.kind === "changed" && state.holder?.phase === "serving"
					? [state, [...effects, { kind: "stop", id: state.holder.id }]]
					: [state, effects];
			},
		],
		[
			"a change during a restart is forgotten",
			"the newest version does not serve",
			(before, event) =>
				event.kind === "changed" && before.holder?.phase === "stopping"
					? [before, []]
					: supervise(before, event),
		],
		[
			"connections go on to a server that stops",
			"connections go to a child that does not serve",
			(before, event) => {
				const [state, effects] = supervise(before, event);
				return [state, effects.filter(({ kind }) => kind !== "hold")];
			},
		],
	])("with a planted fault is caught: %s", (_fault, violation, transitions) => {
		const found = new Set<string>();
		for (let seed = 1; seed <= 50; seed++) {
			for (const each of simulate(seed, transitions)) {
				found.add(each);
			}
		}
		expect(found).toContain(violation);
	});
});
