import { Inconsistent, type Mutation, type StorageBackend, WatchClosed } from "@plinth/storage";
import { type Lifetime, never } from "./server-lifetime.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/**
 * The storage of a deployment as one life of a server reaches it: every step takes its time before it
 * happens and before it is heard of, commits may be answered Inconsistent, watches break, and nothing
 * is heard of when the life is over. A commit that was sent by then may still land.
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
		if (lifetime.isOver) {
			return never();
		}
		if ("failure" in outcome) {
			throw outcome.failure;
		}
		return outcome.value;
	}

	async function land(mutations: readonly Mutation[], whenever: boolean): Promise<void> {
		try {
			if (whenever) {
				await sim.wait(sim.random.next() * sim.pick([10, 2_000, 60_000]));
			}
			await backend.commit(mutations);
			sim.trace.add(name, () => "  (a commit that nobody knows of has landed)");
		} catch {
			// Then it never does.
		}
	}

	return {
		read: (id, options) => step(() => backend.read(id, options)),
		list: (query, options) => step(() => backend.list(query, options)),
		snapshot: (query, options) => step(() => backend.snapshot(query, options)),
		listByOwner: (owner) => step(() => backend.listByOwner(owner)),
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
					await land(mutations, false);
				}
				return never();
			}
			if (!options?.dryRun && sim.happens(sim.faults.unknown)) {
				const outcome = sim.pick(["landed", "lands later", "never lands"]);
				sim.trace.add(name, () => `a commit is answered Inconsistent: ${outcome}`);
				if (outcome === "landed") {
					await land(mutations, false);
				} else if (outcome === "lands later") {
					void land(mutations, true);
				}
				await sim.delay();
				if (lifetime.isOver) {
					return never();
				}
				throw new Inconsistent("nobody knows whether it has landed");
			}
			return step(() => backend.commit(mutations, options));
		},
		async *watchList(query, options) {
			await sim.delay();
			for await (const event of backend.watchList(query, options)) {
				await sim.delay();
				if (lifetime.isOver) {
					return;
				}
				if (sim.happens(sim.faults.broken)) {
					throw new WatchClosed("it broke");
				}
				yield event;
			}
		},
	};
}
