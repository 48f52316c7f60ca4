import { createCache } from "@plinth/cache";
import { labelProblem } from "@plinth/resource";
import { backoffDelayMs } from "@plinth/runtime";
import { cachedTypes } from "../define/cached-types.ts";
import type { Controller, Placement } from "../define/controller.ts";
import type { WatchedRegions } from "../define/watch.ts";

const placements: readonly Placement[] = ["singleton", "sharded", "each-server"];

/**
 * Checks that a controller can be run.
 *
 * @throws Error that names the controller and what is wrong with it.
 */
export function checkController(controller: Controller): void {
	const problem = problemOf(controller);
	if (problem !== undefined) {
		throw new Error(`controller ${controller.name || "without a name"}: ${problem}`);
	}
}

function problemOf(controller: Controller): string | undefined {
	if (!controller.name) {
		return "it needs a name";
	}
	if (typeof controller.reconcile !== "function") {
		return "it has no reconciler: the function `reconcile` is missing";
	}
	if (controller.manages?.key === undefined) {
		return "it manages no type: `manages` is missing";
	}
	return (
		watchProblem(controller) ??
		eventsProblem(controller) ??
		numberProblem(controller) ??
		cacheProblem(controller)
	);
}

function watchProblem(controller: Controller): string | undefined {
	const { manages } = controller;
	const families = new Map([[manages.family, manages.key]]);
	const watched = new Set<string>();
	for (const watch of controller.watches) {
		if (watch.kind !== "resources") {
			continue;
		}
		const { family, key } = watch.type;
		const other = families.get(family);
		const problem = regionsProblem(watch.regions);
		if (problem !== undefined) {
			return `watch of ${key}: ${problem}`;
		}
		if (watched.has(key)) {
			return `type ${key} is watched twice`;
		}
		watched.add(key);
		if (key === manages.key) {
			if (watch.regions.length === 0) {
				return `type ${key} is managed and can't be watched as well, but for copies: its watch needs \`regions\``;
			}
			continue;
		}
		if (other !== undefined) {
			return `types ${other} and ${key} are two group versions of one kind`;
		}
		families.set(family, key);
	}
	return undefined;
}

function regionsProblem(regions: WatchedRegions): string | undefined {
	if (regions === "*") {
		return undefined;
	}
	if (!Array.isArray(regions)) {
		return `regions must be "*" or a list of regions, got "${regions}"`;
	}
	for (const region of regions) {
		const problem = region === "*" ? 'in a list, say regions: "*" for all' : labelProblem(region);
		if (problem !== undefined) {
			return `region "${region}": ${problem}`;
		}
	}
	return undefined;
}

function eventsProblem(controller: Controller): string | undefined {
	const names = new Set<string>();
	for (const watch of controller.watches) {
		if (watch.kind === "custom") {
			if (!watch.name) {
				return "a custom watch has no name";
			}
			if (names.has(watch.name)) {
				return `there are two custom watches named ${watch.name}`;
			}
			names.add(watch.name);
		}
	}
	return undefined;
}

function numberProblem(controller: Controller): string | undefined {
	const { concurrency, resyncMs, backoff, placement } = controller;
	const { slowReconcileMs, reconcileTimeoutMs } = controller;
	if (!Number.isInteger(concurrency) || concurrency < 1) {
		return `concurrency must be a whole number of 1 or more, got ${concurrency}`;
	}
	if (!(slowReconcileMs > 0)) {
		return `slowReconcileMs must be more than 0, got ${slowReconcileMs}`;
	}
	if (!(reconcileTimeoutMs > 0)) {
		return `reconcileTimeoutMs must be more than 0, got ${reconcileTimeoutMs}`;
	}
	if (resyncMs !== "never" && !(resyncMs > 0)) {
		return `resyncMs must be more than 0 or "never", got ${resyncMs}`;
	}
	if (!(backoffDelayMs(backoff, 1) > 0)) {
		return "backoff must have a baseMs and a maxMs of more than 0";
	}
	if (!placements.includes(placement)) {
		return `placement must be ${placements.map((each) => `"${each}"`).join(", ")}, got "${placement}"`;
	}
	return undefined;
}

/** The cache's error for the types, indexes and queries, such as duplicates and unknown types. */
function cacheProblem(controller: Controller): string | undefined {
	const { indexes, queries } = controller;
	try {
		createCache({ types: cachedTypes(controller), indexes, queries });
		return undefined;
	} catch (error) {
		return error instanceof Error ? error.message : String(error);
	}
}
