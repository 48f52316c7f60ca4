import {
	type Fence,
	type LeaseHold,
	type LeaseManager,
	LocalLeases,
	linkedSignal,
} from "@plinth/runtime";
import type { Lifetime } from "./server-lifetime.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** How long a lease stays with a server that has crashed or is stalled. */
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

	/**
	 * The leases as one server acquires them. They expire when it has crashed, or stalls for too long: it learns that
	 * when it continues.
	 */
	of(lifetime: Lifetime): LeaseManager {
		const crashed = new AbortController();
		lifetime.onEnd(() => crashed.abort());
		return {
			acquire: async (name, signal) => {
				const ends = linkedSignal(signal, crashed.signal);
				const granted = this.#leases.acquire(name, ends.signal).finally(ends[Symbol.dispose]);
				return lifetime.within(granted.then((hold) => this.#expiring(hold, lifetime)));
			},
			held: (prefix, signal) =>
				this.#held(prefix, AbortSignal.any([signal, crashed.signal]), lifetime),
		};
	}

	async *#held(
		prefix: string,
		signal: AbortSignal,
		lifetime: Lifetime,
	): AsyncGenerator<ReadonlySet<string>, never> {
		const changes = this.#leases.held(prefix, signal);
		for (;;) {
			const { value } = await lifetime.within(changes.next());
			yield value;
		}
	}

	#expiring(hold: LeaseHold, lifetime: Lifetime): LeaseHold {
		const ended = new AbortController();
		const end = () => ended.abort(hold.signal.reason);
		// Node keeps composite signals in memory, and all that listens to them, until they abort.
		this.#sim.atEnd(end);
		hold.signal.addEventListener("abort", () => {
			if (lifetime.isStalled) {
				void lifetime.awake().then(end);
			} else {
				end();
			}
		});
		const expire = () => void this.#sim.wait(timeToLiveMs).then(() => hold.release());
		const forgetEnd = lifetime.onEnd(expire);
		if (lifetime.isOver) {
			expire();
		}
		const forgetStalls = lifetime.onStall(() => {
			const woken = lifetime.awake().then(() => "woken" as const);
			void Promise.race([woken, this.#sim.wait(timeToLiveMs)]).then((first) =>
				first === "woken" ? undefined : hold.release(),
			);
		});
		return {
			fence: hold.fence,
			signal: ended.signal,
			release: async () => {
				if (!lifetime.isOver) {
					forgetEnd();
					forgetStalls();
					await hold.release();
				}
			},
		};
	}
}
