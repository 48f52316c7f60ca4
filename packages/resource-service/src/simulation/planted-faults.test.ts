import type { WatchSetEvent } from "@plinth/proto";
import type { Runtime } from "@plinth/runtime";
import { WatchDeliveries } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { recordHistory } from "./artist-history.fixture.ts";
import { checkLinearizable, Violation } from "./linearizability.fixture.ts";
import { type PlantedFault, plantedFaults } from "./planted-faults.fixture.ts";
import { SetWatcher } from "./set-watchers.fixture.ts";
import { createSimulation, type Simulation, type SimulationOptions } from "./simulation.fixture.ts";
import { runWatchers } from "./watchers.fixture.ts";

const runSets = (simulation: Simulation) =>
	runWatchers(simulation, {}, (each) => new SetWatcher(each));

/** The checks that must notice each fault. */
const checks = {
	"the check of histories": async (simulation: Simulation) => {
		const { operations, events } = await recordHistory(simulation);
		checkLinearizable(events, operations);
	},
	"the check of watchers": (simulation: Simulation) => runWatchers(simulation),
	"the check of sets of watches": (simulation: Simulation) => runSets(simulation),
};
/** How many runs a check has to notice a fault that strikes once or twice in each. */
const runs = 100;

/** What is decided on an outdated resource is stored and watched as any other change. */
function isNoticedBy(check: string, fault: PlantedFault): boolean {
	return fault !== "rebase on an outdated resource" || check === "the check of histories";
}

/** The number of the first run in which the check notices something; 0 if it notices nothing. */
async function firstNotice(
	check: (simulation: Simulation) => Promise<unknown>,
	options: Omit<SimulationOptions, "seed">,
): Promise<number> {
	for (let seed = 1; seed <= runs; seed += 1) {
		try {
			await check(await createSimulation({ seed, ...options }));
		} catch (error) {
			expect(error).toBeInstanceOf(Violation);
			return seed;
		}
	}
	return 0;
}

/** Deliveries of which one in twenty is forgotten: a watch is not woken. */
function forgetful(runtime: Runtime): Pick<WatchDeliveries, "add"> {
	const deliveries = new WatchDeliveries(runtime, { perIteration: 2 });
	return {
		add(delivery) {
			if (runtime.random.next() > 0.05) {
				deliveries.add(delivery);
			}
		},
	};
}

describe.each(Object.entries(checks))("%s", (name, check) => {
	it.each(plantedFaults.filter((fault) => isNoticedBy(name, fault)))(
		"notices a %s",
		async (fault) => {
			expect(await firstNotice(check, { fault })).toBeGreaterThan(0);
		},
	);
});

describe("the check of many watchers", () => {
	it("notices that one of them is not woken", async () => {
		const check = (simulation: Simulation) =>
			runWatchers(simulation, { watchers: 20, writesEach: 5 });
		expect(await firstNotice(check, { deliveries: forgetful })).toBeGreaterThan(0);
	});
});

/** A set whose messages are changed: one in twenty is passed to `fault`, with the message before it. */
function withSetFault(
	simulation: Simulation,
	fault: (message: WatchSetEvent, before: WatchSetEvent) => readonly WatchSetEvent[],
): Simulation {
	const { client, random } = simulation;
	return {
		...simulation,
		client: {
			...simulation.client,
			async *watchSet(...call) {
				let before: WatchSetEvent | undefined;
				for await (const message of client.watchSet(...call)) {
					const isStruck = message.content.case === "event" && random.next() < 0.05;
					yield* isStruck && before !== undefined ? fault(message, before) : [message];
					before = message;
				}
			},
		},
	};
}

describe("the check of sets of watches", () => {
	it.each([
		["under the id of another watch", (message, { watchId }) => [{ ...message, watchId }]],
		[
			"dropped when the turn changes",
			(message, { watchId }) => (message.watchId === watchId ? [message] : []),
		],
		["sent twice", (message) => [message, message]],
	] satisfies [string, Parameters<typeof withSetFault>[1]][])(
		"notices a message that is %s",
		async (_name, fault) => {
			const check = (simulation: Simulation) => runSets(withSetFault(simulation, fault));
			expect(await firstNotice(check, {})).toBeGreaterThan(0);
		},
	);
});
