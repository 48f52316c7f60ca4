import { ConnectError } from "@connectrpc/connect";
import type { Clock, Logger } from "@plinth/runtime";

/** How long hints must have failed before that is a warning, and the pause until the next one, in milliseconds. */
const warningMs = 60_000;

/** The failures in a row at one server, on the monotonic clock. */
interface Failing {
	readonly sinceMs: number;
	warnedMs: number | undefined;
}

/**
 * Warns of each server of this deployment to which nothing could be passed on for more than a minute: once a minute. One that
 * has died is not among the siblings for so long.
 */
export class SiblingFailures {
	readonly #options: { readonly clock: Clock; readonly logger: Logger };
	/** By address. */
	readonly #failing = new Map<string, Failing>();

	constructor(options: { readonly clock: Clock; readonly logger: Logger }) {
		this.#options = options;
	}

	/** Forgets the failures at addresses where no sibling runs any longer. */
	keepOnly(addresses: ReadonlySet<string>): void {
		for (const address of this.#failing.keys()) {
			if (!addresses.has(address)) {
				this.#failing.delete(address);
			}
		}
	}

	succeeded(address: string): void {
		this.#failing.delete(address);
	}

	failed(address: string, failure: unknown): void {
		const { clock, logger } = this.#options;
		const now = clock.monotonic();
		const failing = this.#failing.get(address) ?? { sinceMs: now, warnedMs: undefined };
		this.#failing.set(address, failing);
		const err = ConnectError.from(failure);
		const { sinceMs, warnedMs = sinceMs } = failing;
		if (now - warnedMs < warningMs) {
			logger.debug({ err, address }, "hints could not be passed on to another server");
			return;
		}
		failing.warnedMs = now;
		logger.warn(
			{ err, address, failingForMs: Math.round(now - sinceMs) },
			"another server of this deployment can't be reached at this address: deletions may wait. The internal listener of each server must be reachable for the others: set --internal-listen there to an address at which they reach it, or, if it listens on all interfaces, --advertised-address to such a host",
		);
	}
}
