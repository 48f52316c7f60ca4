import type { Behaviour, BehaviourGroup, HarnessFactory } from "./behaviour.ts";
import { censusBehaviours } from "./census.ts";
import { commitBehaviours } from "./commits.ts";
import { compareAndSwapBehaviours } from "./compare-and-swap.ts";
import { concurrencyBehaviours } from "./concurrency.ts";
import { fenceBehaviours } from "./fences.ts";
import { lifecycleBehaviours } from "./lifecycle.ts";
import { limitBehaviours } from "./limits.ts";
import { listBehaviours } from "./lists.ts";
import { ownerBehaviours } from "./owners.ts";
import { randomOperations } from "./random-operations.ts";
import { readBehaviours } from "./reads.ts";
import { resumeBehaviours } from "./resume.ts";
import { snapshotBehaviours } from "./snapshots.ts";
import { watchBehaviours } from "./watches.ts";

/** All behaviours that a backend must have. */
export const behaviourGroups: readonly BehaviourGroup[] = [
	{ subject: "reads", behaviours: readBehaviours },
	{ subject: "compare-and-swap", behaviours: compareAndSwapBehaviours },
	{ subject: "commits", behaviours: commitBehaviours },
	{ subject: "fences", behaviours: fenceBehaviours },
	{ subject: "lists", behaviours: listBehaviours },
	{ subject: "snapshots", behaviours: snapshotBehaviours },
	{ subject: "watches", behaviours: watchBehaviours },
	{ subject: "resuming and falling behind", behaviours: resumeBehaviours },
	{ subject: "owners", behaviours: ownerBehaviours },
	{ subject: "census", behaviours: censusBehaviours },
	{ subject: "limits", behaviours: limitBehaviours },
	{ subject: "concurrency", behaviours: concurrencyBehaviours },
	{ subject: "random operations", behaviours: randomOperations },
	{ subject: "lifecycle", behaviours: lifecycleBehaviours },
];

/** The test runner: the functions of these names of vitest and node:test fit. */
export interface TestRunner {
	// biome-ignore lint/suspicious/noConfusingVoidType: runners differ in what these return.
	describe(name: string, body: () => void): void | unknown;
	// biome-ignore lint/suspicious/noConfusingVoidType: runners differ in what these return.
	it(name: string, body: () => Promise<void>): void | unknown;
	/** The number of seeds for each behaviour with random input; 5 by default. */
	readonly seeds?: number;
	/** The first seed; 1 by default. */
	readonly firstSeed?: number;
}

/** Declares a test for each behaviour, against a backend that the factory makes for it. */
export function describeConformance(
	name: string,
	factory: HarnessFactory,
	{ describe, it, seeds = 5, firstSeed = 1 }: TestRunner,
): void {
	describe(`${name} conforms`, () => {
		for (const { subject, behaviours } of behaviourGroups) {
			describe(subject, () => {
				for (const behaviour of behaviours) {
					const runs = behaviour.seeded ? seeds : 1;
					for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
						const suffix = behaviour.seeded ? ` (seed ${seed})` : "";
						it(`${behaviour.name}${suffix}`, () => check(behaviour, factory, seed));
					}
				}
			});
		}
	});
}

async function check(behaviour: Behaviour, factory: HarnessFactory, seed: number): Promise<void> {
	const harness = await factory({ limits: behaviour.limits ?? {} });
	try {
		await behaviour.run(harness, seed);
	} finally {
		await harness.dispose();
	}
}
