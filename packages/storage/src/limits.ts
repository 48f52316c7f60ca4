import { isMarkedForDeletion } from "@plinth/resource";
import type { MutationEffect } from "./compare-and-swap.ts";
import { Exhausted } from "./errors.ts";
import type { Mutation } from "./mutation.ts";
import { memorySize, resourceSize } from "./state-store/resource-size.ts";

/**
 * The limits of a storage. Sizes of commits and resources are measured by `resourceSize`, all others by
 * `memorySize`.
 */
export interface StorageLimits {
	/** Mutations of one commit. */
	readonly mutations: number;
	/** Bytes of all resources put by one commit. */
	readonly commitBytes: number;
	/** Bytes of one resource. */
	readonly resourceBytes: number;
	/**
	 * Bytes of memory of all resources together. Above 80 % of it, commits that grow the state are refused;
	 * deletions and commits that do not grow it still succeed.
	 */
	readonly memoryBytes: number;
	/** Events that the log of one type family keeps for watches. */
	readonly logEvents: number;
	/** Bytes that the log of one type family keeps alive for watches. */
	readonly logBytes: number;
	/**
	 * Bytes that event logs and held snapshots together keep alive beyond the state. Above it, logs are
	 * shortened and snapshots end. See `retainedBudget` for how a memory limit reduces it.
	 */
	readonly retainedBytes: number;
}

const mebibyte = 1024 * 1024;

/** The default limits. */
export const defaultStorageLimits: StorageLimits = Object.freeze({
	mutations: 100,
	commitBytes: 8 * mebibyte,
	resourceBytes: mebibyte + 64 * 1024,
	memoryBytes: Number.POSITIVE_INFINITY,
	logEvents: 65_536,
	logBytes: 64 * mebibyte,
	retainedBytes: 256 * mebibyte,
});

/** The share of the memory limit above which growth is refused. */
export const growthShare = 0.8;

/**
 * Checks the size of a commit, before anything else.
 *
 * @throws Exhausted, which names the limit.
 */
export function checkCommitLimits(mutations: readonly Mutation[], limits: StorageLimits): void {
	if (mutations.length > limits.mutations) {
		throw new Exhausted(
			`commit of ${mutations.length} mutations: at most ${limits.mutations} are allowed`,
		);
	}
	let total = 0;
	for (const mutation of mutations) {
		if (mutation.op !== "put") {
			continue;
		}
		const size = resourceSize(mutation.resource);
		if (size > limits.resourceBytes) {
			throw new Exhausted(`resource of ${size} bytes: at most ${limits.resourceBytes} are allowed`);
		}
		total += size;
	}
	if (total > limits.commitBytes) {
		throw new Exhausted(`commit of ${total} bytes: at most ${limits.commitBytes} are allowed`);
	}
}

/**
 * Checks whether the state may grow by what a commit does to it.
 *
 * @param stateBytes The size of the state before the commit.
 * @throws Exhausted, which names the limit.
 */
export function checkGrowth(
	stateBytes: number,
	effects: readonly MutationEffect[],
	limits: StorageLimits,
): void {
	if (limits.memoryBytes === Number.POSITIVE_INFINITY) {
		return;
	}
	if (effects.some(deletes)) {
		return;
	}
	const growth = memoryGrowth(effects);
	if (growth > 0 && stateBytes + growth > limits.memoryBytes * growthShare) {
		throw new Exhausted(
			`the state holds ${stateBytes} bytes and would grow by ${growth}: that is over ${growthShare * 100} % of the memory limit of ${limits.memoryBytes} bytes; delete resources or raise the limit`,
		);
	}
}

/** Whether the effect deletes a resource (which may add a tombstone) or marks it for deletion. */
function deletes(effect: MutationEffect): boolean {
	return (
		effect.kind === "delete" ||
		(effect.kind === "put" &&
			effect.replaced !== undefined &&
			isMarkedForDeletion(effect.resource) &&
			!isMarkedForDeletion(effect.replaced))
	);
}

/** The bytes of memory that the effects add to the state, minus those that they free. */
export function memoryGrowth(effects: readonly MutationEffect[]): number {
	let growth = 0;
	for (const effect of effects) {
		if (effect.kind === "put") {
			growth += memorySize(effect.resource);
			growth -= memorySize(effect.replaced);
		} else if (effect.kind === "delete") {
			growth -= memorySize(effect.stored);
		}
	}
	return growth;
}
