import type { SimulatedProcess } from "./participants.fixture.ts";

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
