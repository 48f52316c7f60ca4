import type { Logger } from "@plinth/runtime";

/**
 * The readiness of a running server. A server is ready while no part of it is blocked: `/readyz` and the health service
 * report the reasons, and load balancers send calls to other servers. Calls that arrive nevertheless are served as far
 * as possible.
 */
export class Readiness {
	readonly #logger: Logger;
	readonly #reasons = new Map<string, string>();

	constructor(logger: Logger) {
		this.#logger = logger;
	}

	/** The reasons why the server is not ready, by blocked part. */
	get reasons(): ReadonlyMap<string, string> {
		return this.#reasons;
	}

	get isReady(): boolean {
		return this.#reasons.size === 0;
	}

	/**
	 * Marks a part as blocked. A new reason for the same part replaces the previous one.
	 *
	 * @param part - such as `storage` or `references`.
	 * @param reason - the problem and what to do, for operators.
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
			this.#logger.info(
				{ part },
				this.isReady ? "server ready again" : "a part of the server is ready again",
			);
		}
	}
}
