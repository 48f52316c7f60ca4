import {
	type CommitOptions,
	type Mutation,
	type StorageBackend,
	StorageUnavailable,
	WatchClosed,
} from "@plinth/storage";
import { type Lifetime, never } from "./server-lifetime.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/**
 * The storage of a deployment as one server process reaches it: each step is delayed before it takes effect
 * and before its result arrives, commits may fail with StorageUnavailable, watches break, and no results arrive
 * after the end of the lifetime. A commit that was sent before may still be applied.
 */
export function faultyStorage(
	sim: SimulationContext,
	name: string,
	backend: StorageBackend,
	lifetime: Lifetime,
): StorageBackend {
	async function step<T>(run: () => Promise<T>): Promise<T> {
		await sim.delay();
		if (lifetime.isOver) {
			return never();
		}
		let outcome: { readonly value: T } | { readonly failure: unknown };
		try {
			outcome = { value: await run() };
		} catch (failure) {
			outcome = { failure };
		}
		await sim.delay();
		if (lifetime.isStalled) {
			await lifetime.awake();
		}
		if (lifetime.isOver) {
			return never();
		}
		if ("failure" in outcome) {
			throw outcome.failure;
		}
		return outcome.value;
	}

	async function applyUnseen(
		mutations: readonly Mutation[],
		options: CommitOptions | undefined,
		isDelayed: boolean,
	): Promise<void> {
		try {
			if (isDelayed) {
				await sim.wait(sim.random.next() * sim.pick([10, 2_000, 60_000]));
			}
			await backend.commit(mutations, options);
			sim.trace.add(name, () => "  (a commit was applied without its server knowing)");
		} catch {
			// It is never applied.
		}
	}

	return {
		read: (id, options) => step(() => backend.read(id, options)),
		lookup: (target, options) => step(() => backend.lookup(target, options)),
		list: (query, options) => step(() => backend.list(query, options)),
		snapshot: (query, options) => step(() => backend.snapshot(query, options)),
		listByOwner: (owner, options) => step(() => backend.listByOwner(owner, options)),
		countByType: () => step(() => backend.countByType()),
		countByTypeIn: (unit, options) => step(() => backend.countByTypeIn(unit, options)),
		catchUp: (signal) => step(() => backend.catchUp(signal)),
		close: async () => {},
		async commit(mutations, options) {
			await sim.delay();
			if (!options?.dryRun && name === sim.deployments.at(-1)?.info.name) {
				await sim.hold();
			}
			if (lifetime.isOver) {
				if (!options?.dryRun && sim.happens(0.5)) {
					await applyUnseen(mutations, options, false);
				}
				return never();
			}
			if (!options?.dryRun && sim.happens(sim.faults.unknown)) {
				const outcome = sim.pick(["applied", "applied later", "never applied"]);
				sim.trace.add(name, () => `a commit fails with StorageUnavailable: ${outcome}`);
				if (outcome === "applied") {
					await applyUnseen(mutations, options, false);
				} else if (outcome === "applied later") {
					void applyUnseen(mutations, options, true);
				}
				await sim.delay();
				if (lifetime.isStalled) {
					await lifetime.awake();
				}
				if (lifetime.isOver) {
					return never();
				}
				throw new StorageUnavailable("whether the commit was applied is not known");
			}
			return step(() => backend.commit(mutations, options));
		},
		async *watchList(query, options) {
			await sim.delay();
			let seen = 0;
			let isSnapshot = true;
			for await (const event of backend.watchList(query, options)) {
				await sim.delay();
				if (lifetime.isStalled) {
					await lifetime.awake();
				}
				if (lifetime.isOver) {
					await never();
				}
				seen += 1;
				isSnapshot &&= event.kind !== "end-of-snapshot";
				// Otherwise no large snapshot would be complete.
				const mayBreak = !isSnapshot || seen <= 30;
				if (sim.happens(sim.faults.broken) && mayBreak) {
					throw new WatchClosed("the watch broke");
				}
				yield event;
			}
		},
	};
}
