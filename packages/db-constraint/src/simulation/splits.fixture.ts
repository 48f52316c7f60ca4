import type { SimulatedProcess } from "./participants.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/** Which deployments can't reach which servers of the meta deployment. The same holds in the other direction. */
export class Splits {
	/** As `deployment address`. */
	#cut: ReadonlySet<string> = new Set();
	readonly #listeners = new Set<() => void>();

	/** Cuts these deployments off from the servers at these addresses, and from no others. */
	cut(names: readonly string[], addresses: readonly string[]): void {
		this.#cut = new Set(names.flatMap((name) => addresses.map((address) => `${name} ${address}`)));
		for (const listener of [...this.#listeners]) {
			listener();
		}
	}

	/** Whether two processes can't reach each other. */
	separates(
		one: Pick<SimulatedProcess, "name" | "address">,
		other: Pick<SimulatedProcess, "name" | "address">,
	): boolean {
		return (
			this.#cut.size > 0 &&
			(this.#cut.has(`${one.name} ${other.address}`) ||
				this.#cut.has(`${other.name} ${one.address}`))
		);
	}

	/** Calls the function after each change, until the returned function is called. */
	onChange(listener: () => void): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}
}

/** Cuts deployments off from one server of the meta deployment, or from all, for a while. */
export async function split(sim: SimulationContext, isRunning: () => boolean): Promise<void> {
	const { random, meta } = sim;
	const { splitEveryMs } = sim.faults;
	while (isRunning() && splitEveryMs !== Number.POSITIVE_INFINITY) {
		await sim.wait(-Math.log(1 - random.next()) * splitEveryMs);
		if (!isRunning()) {
			break;
		}
		const names = [meta.name, ...sim.deployments.map(({ info }) => info.name)];
		const address = meta.addresses[sim.below(meta.addresses.length)] ?? "";
		const isTotal = sim.happens(0.3);
		const cut = isTotal ? names : names.filter(() => sim.happens(0.5));
		sim.splits.cut(cut, isTotal ? meta.addresses : [address]);
		sim.trace.add(meta.name, () => `${isTotal ? "all servers" : address}: cut off from ${cut}`);
		await sim.wait(random.next() * sim.pick([1_000, 20_000, 120_000]));
		sim.splits.cut([], []);
	}
}
