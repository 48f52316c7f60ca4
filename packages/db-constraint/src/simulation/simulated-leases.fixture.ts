import { type Fence, type LeaseManager, LocalLeases } from "@plinth/runtime";
import type { Lifetime } from "./server-lifetime.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** How long a lease stays with a server that has crashed. */
const timeToLiveMs = 10_000;

/** The leases of a deployment, which its storage keeps: one server at a time holds each. */
export class SimulatedLeases {
	readonly #sim: SimulationContext;
	readonly #leases = new LocalLeases();

	constructor(sim: SimulationContext) {
		this.#sim = sim;
	}

	/** Whether a commit that carries the fence may be applied. */
	isCurrent(fence: Fence): boolean {
		return this.#leases.isCurrent(fence);
	}

	/** The leases as one server acquires them. After a crash, its leases expire. */
	of(lifetime: Lifetime): LeaseManager {
		const crashed = new AbortController();
		lifetime.onEnd(() => crashed.abort());
		return {
			acquire: async (name, signal) => {
				const ends = AbortSignal.any([signal, crashed.signal]);
				const hold = await lifetime.within(this.#leases.acquire(name, ends));
				const forget = lifetime.onEnd(() => {
					void this.#sim.wait(timeToLiveMs).then(() => hold.release());
				});
				return {
					fence: hold.fence,
					signal: hold.signal,
					release: async () => {
						if (!lifetime.isOver) {
							forget();
							await hold.release();
						}
					},
				};
			},
		};
	}
}
