import { nameKey } from "@plinth/resource";
import type { OnReconcile } from "./market-controllers.fixture.ts";

interface Reconcile {
	readonly server: string;
	readonly key: string;
	readonly signal: AbortSignal;
}

/**
 * Checks that singletons run on one server at a time, and that no key is reconciled twice at a time by one
 * controller. Aborted work does not count as running.
 */
export class SoleLeader {
	readonly violations: string[] = [];
	readonly #running = new Set<Reconcile>();
	reconciles = 0;

	on(server: string): OnReconcile {
		return (controller, id, signal) => {
			const begun: Reconcile = { server, key: `${controller} ${nameKey(id)}`, signal };
			this.reconciles += 1;
			for (const other of this.#running) {
				if (other.signal.aborted) {
					continue;
				}
				if (other.server !== server) {
					this.violations.push(
						`${begun.key} is reconciled on ${server} while ${other.key} is on ${other.server}`,
					);
				} else if (other.key === begun.key) {
					this.violations.push(`${begun.key} is reconciled twice at a time`);
				}
			}
			this.#running.add(begun);
			return () => {
				this.#running.delete(begun);
			};
		};
	}
}
