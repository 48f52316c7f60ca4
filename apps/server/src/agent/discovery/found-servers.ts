import type { ServerTarget } from "@plinth/forwarding";
import type { DiscoveryContext, DiscoveryStatus } from "./discovery.ts";

/** The servers that were found last. */
export class FoundServers {
	readonly #context: Pick<DiscoveryContext, "apply" | "clock">;
	#status: DiscoveryStatus;

	/** @param source - as in the setting. */
	constructor(source: string, context: Pick<DiscoveryContext, "apply" | "clock">) {
		this.#context = context;
		this.#status = { source, servers: 0, foundAtMs: undefined, problem: "", failures: 0 };
	}

	get status(): DiscoveryStatus {
		return this.#status;
	}

	/** Uses what was found. */
	apply(servers: readonly ServerTarget[]): void {
		this.#context.apply(servers);
		this.#status = { ...this.#status, servers: servers.length };
		this.unchanged();
	}

	/** The servers from before were found again. */
	unchanged(): void {
		this.#status = { ...this.#status, foundAtMs: this.#context.clock.now(), problem: "" };
	}

	/** Nothing was found: the servers from before stay. */
	failed(failure: unknown): void {
		const problem = failure instanceof Error ? failure.message : String(failure);
		this.#status = { ...this.#status, problem, failures: this.#status.failures + 1 };
	}
}
