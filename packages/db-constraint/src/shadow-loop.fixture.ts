import { backoffDelayMs, type Clock, type Scheduler, type Timer } from "@plinth/runtime";
import type { Constraints } from "./constraints.ts";
import type { HandlerResult } from "./controller/handler-result.ts";
import { ShadowHandlers } from "./controller/shadow-handlers.ts";
import type { Deletion } from "./controller/subscribed-deleting-handler.ts";
import { keyString } from "./resource-key.ts";

/** Options of a loop. */
export interface ShadowLoopOptions {
	readonly constraints: Constraints;
	readonly clock: Clock;
	readonly scheduler: Scheduler;
	/** Called with the failure of a pass, which is retried. */
	readonly onFailure?: (failure: unknown) => void;
}

/**
 * Runs the handlers of shadows without the controller runtime: never one key concurrently, and failures are retried with
 * backoff. For simulations, which start thousands of servers.
 */
export class ShadowLoop {
	readonly #handlers: ShadowHandlers;
	readonly #clock: Clock;
	readonly #scheduler: Scheduler;
	readonly #onFailure: (failure: unknown) => void;
	readonly #passes = new Map<string, () => Promise<HandlerResult>>();
	readonly #running = new Set<string>();
	readonly #again = new Set<string>();
	readonly #timers = new Map<string, Timer>();
	readonly #failures = new Map<string, number>();
	readonly #stops: (() => void)[];
	#stopped = false;

	constructor({ constraints, clock, scheduler, onFailure = () => {} }: ShadowLoopOptions) {
		this.#clock = clock;
		this.#scheduler = scheduler;
		this.#onFailure = onFailure;
		const { context, holderQuery, store, hints } = constraints;
		this.#handlers = new ShadowHandlers({
			context,
			holderQuery,
			store,
			queue: (name) => this.#queueShadow(name),
		});
		this.#stops = [
			this.#handlers.followEnvironment(),
			context.index.onChange(({ name, shadow }) => {
				this.#queueShadow(name);
				const own = context.environment.self.uid;
				if (shadow.lifecycle === 3 && shadow.resource !== undefined) {
					this.deletion({ deploymentUid: own, target: shadow.resource, targetUid: shadow.uid });
				}
			}),
			hints.addListener({
				queryHolderSoon: (name, uid) => {
					this.#handlers.hint(name, uid);
					this.#queueShadow(name);
				},
				deleting: (deploymentUid, target, targetUid) =>
					this.deletion({ deploymentUid, target, targetUid }),
			}),
		];
	}

	/** Queues the deletion of a target. */
	deletion(deletion: Deletion): void {
		const key = `deletion ${keyString(deletion.target)} ${deletion.targetUid}`;
		this.#queue(key, () => this.#handlers.handleDeletion(deletion));
	}

	/** Whether a pass is running or queued. */
	get isRunning(): boolean {
		return this.#running.size > 0;
	}

	/** Starts no further passes. */
	stop(): void {
		this.#stopped = true;
		for (const stop of this.#stops) {
			stop();
		}
		for (const timer of this.#timers.values()) {
			timer.cancel();
		}
	}

	#queueShadow(name: string): void {
		this.#queue(`shadow ${name}`, () => this.#handlers.handleShadow(name));
	}

	#queue(key: string, pass: () => Promise<HandlerResult>): void {
		if (this.#stopped) {
			return;
		}
		this.#passes.set(key, pass);
		if (this.#running.has(key)) {
			this.#again.add(key);
			return;
		}
		this.#timers.get(key)?.cancel();
		this.#timers.delete(key);
		this.#running.add(key);
		this.#scheduler.schedule(() => void this.#run(key));
	}

	async #run(key: string): Promise<void> {
		if (this.#stopped) {
			return;
		}
		let requeueAfterMs: number | undefined;
		try {
			const handled = await this.#passes.get(key)?.();
			requeueAfterMs = handled?.requeueAfterMs;
			this.#failures.delete(key);
		} catch (failure) {
			this.#onFailure(failure);
			const failures = (this.#failures.get(key) ?? 0) + 1;
			this.#failures.set(key, failures);
			requeueAfterMs = backoffDelayMs({ baseMs: 20, maxMs: 10_000 }, failures);
		}
		this.#running.delete(key);
		const pass = this.#passes.get(key);
		if (this.#stopped || pass === undefined) {
			return;
		}
		if (this.#again.delete(key) || requeueAfterMs === 0) {
			this.#queue(key, pass);
		} else if (requeueAfterMs !== undefined) {
			this.#timers.set(
				key,
				this.#clock.setTimer(requeueAfterMs, () => {
					this.#timers.delete(key);
					this.#queue(key, pass);
				}),
			);
		} else {
			this.#passes.delete(key);
		}
	}
}
