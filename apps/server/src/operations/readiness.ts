import type { Logger } from "@plinth/runtime";

/**
 * What keeps a running server from doing its work. A server is ready while no part of it is blocked:
 * `/readyz` and the health service report the reasons, and balancers send their calls elsewhere. Calls that
 * arrive all the same are served as far as the server can.
 */
export class Readiness {
	readonly #logger: Logger;
	readonly #reasons = new Map<string, string>();

	constructor(logger: Logger) {
		this.#logger = logger;
	}

	/** Why the server is not ready, by the part that is blocked. */
	get reasons(): ReadonlyMap<string, string> {
		return this.#reasons;
	}

	get isReady(): boolean {
		return this.#reasons.size === 0;
	}

	/**
	 * Marks a part as blocked. Another reason for the same part replaces the one before.
	 *
	 * @param part - as `storage` or `references`.
	 * @param reason - what is wrong and the way out, for the operator.
	 */
	block(part: string, reason: string): void {
		if (this.#reasons.get(part) !== reason) {
			this.#reasons.set(part, reason);
			this.#logger.error({ part, reason }, "server not ready");
		}
	}

	/** Marks a part as working again. */
	clear(part: string): void {
		if (this.#reasons.delete(part)) {
			this.#logger.info({ part }, this.isReady ? "server ready again" : "part of the server ready");
		}
	}
}
