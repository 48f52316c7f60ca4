import type { Behavior, BehaviorGroup, HarnessFactory } from "./behavior.ts";
import { censusBehaviors } from "./census.ts";
import { commitBehaviors } from "./commits.ts";
import { compareAndSwapBehaviors } from "./compare-and-swap.ts";
import { concurrencyBehaviors } from "./concurrency.ts";
import { copyBehaviors } from "./copies.ts";
import { fenceBehaviors } from "./fences.ts";
import { historyBehaviors } from "./histories.ts";
import { lifecycleBehaviors } from "./lifecycle.ts";
import { limitBehaviors } from "./limits.ts";
import { listBehaviors } from "./lists.ts";
import { ownerBehaviors } from "./owners.ts";
import { randomOperations } from "./random-operations.ts";
import { readBehaviors } from "./reads.ts";
import { resumeBehaviors } from "./resume.ts";
import { snapshotBehaviors } from "./snapshots.ts";
import { watchBehaviors } from "./watches.ts";

/** All behaviors that a backend must have. */
export const behaviorGroups: readonly BehaviorGroup[] = [
	{ subject: "reads", behaviors: readBehaviors },
	{ subject: "compare-and-swap", behaviors: compareAndSwapBehaviors },
	{ subject: "commits", behaviors: commitBehaviors },
	{ subject: "fences", behaviors: fenceBehaviors },
	{ subject: "lists", behaviors: listBehaviors },
	{ subject: "copies", behaviors: copyBehaviors },
	{ subject: "snapshots", behaviors: snapshotBehaviors },
	{ subject: "watches", behaviors: watchBehaviors },
	{ subject: "resuming and falling behind", behaviors: resumeBehaviors },
	{ subject: "owners", behaviors: ownerBehaviors },
	{ subject: "census", behaviors: censusBehaviors },
	{ subject: "histories", behaviors: historyBehaviors },
	{ subject: "limits", behaviors: limitBehaviors },
	{ subject: "concurrency", behaviors: concurrencyBehaviors },
	{ subject: "random operations", behaviors: randomOperations },
	{ subject: "lifecycle", behaviors: lifecycleBehaviors },
];

/** The test runner: the functions of these names of vitest and node:test fit. */
export interface TestRunner {
	// biome-ignore lint/suspicious/noConfusingVoidType: runners differ in what these return.
	describe(name: string, body: () => void): void | unknown;
	// biome-ignore lint/suspicious/noConfusingVoidType: runners differ in what these return.
	it(name: string, body: () => Promise<void>): void | unknown;
	/** The number of seeds for each behavior with random input; 5 by default. */
	readonly seeds?: number;
	/** The first seed; 1 by default. */
	readonly firstSeed?: number;
}

/** Declares a test for each behavior, against a backend that the factory makes for it. */
export function describeConformance(
	name: string,
	factory: HarnessFactory,
	{ describe, it, seeds = 5, firstSeed = 1 }: TestRunner,
): void {
	describe(`${name} conforms`, () => {
		for (const { subject, behaviors } of behaviorGroups) {
			describe(subject, () => {
				for (const behavior of behaviors) {
					const runs = behavior.seeded ? seeds : 1;
					for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
						const suffix = behavior.seeded ? ` (seed ${seed})` : "";
						it(`${behavior.name}${suffix}`, () => check(behavior, factory, seed));
					}
				}
			});
		}
	});
}

async function check(behavior: Behavior, factory: HarnessFactory, seed: number): Promise<void> {
	const harness = await factory({ limits: behavior.limits ?? {} });
	try {
		await behavior.run(harness, seed);
	} finally {
		await harness.dispose();
	}
}
