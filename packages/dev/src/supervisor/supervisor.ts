import type { Clock, Timer } from "@plinth/runtime";
import {
	type ChildId,
	initialSupervision,
	type Supervision,
	type SupervisionEffect,
	type SupervisionEvent,
	type SupervisionReport,
	supervise,
} from "./supervision.ts";

/** A child process, as a supervisor needs it. */
export interface SupervisedChild {
	/** Tells it to open the data and serve. */
	serve(): void;
	/** Tells it to stop gracefully. */
	stop(): void;
	kill(): void;
}

/** What a supervisor works with. */
export interface SupervisorParts {
	readonly clock: Clock;
	/** How long a child may take to stop before it is killed. */
	readonly stopMs: number;
	/** Starts a child, which reports to `Supervisor.dispatch`. */
	readonly spawn: (id: ChildId) => SupervisedChild;
	/** Generates code. Resolves to whether that succeeded. Must not reject. */
	readonly generate: (signal: AbortSignal) => Promise<boolean>;
	/** Connections go to this child from now on. */
	readonly forward: (id: ChildId) => void;
	/** Connections wait from now on. */
	readonly hold: () => void;
	readonly report: (event: SupervisionReport) => void;
}

/** Does what `supervise` decides. */
export class Supervisor {
	readonly #parts: SupervisorParts;
	readonly #children = new Map<ChildId, SupervisedChild>();
	readonly #stops = new Map<ChildId, Timer>();
	readonly #ended = Promise.withResolvers<void>();
	#generation = new AbortController();
	#state: Supervision = initialSupervision;

	constructor(parts: SupervisorParts) {
		this.#parts = parts;
	}

	/** Resolves when everything has ended, after the event `end`. */
	get ended(): Promise<void> {
		return this.#ended.promise;
	}

	/** Reacts to an event. */
	dispatch(event: SupervisionEvent): void {
		if (event.kind === "exited") {
			this.#children.delete(event.id);
			this.#stops.get(event.id)?.cancel();
			this.#stops.delete(event.id);
		}
		const [state, effects] = supervise(this.#state, event);
		this.#state = state;
		for (const effect of effects) {
			this.#do(effect);
		}
	}

	/** Kills all children. For a process that exits now. */
	killAll(): void {
		for (const child of this.#children.values()) {
			child.kill();
		}
	}

	#do(effect: SupervisionEffect): void {
		const { clock, stopMs, spawn, generate, forward, hold, report } = this.#parts;
		switch (effect.kind) {
			case "generate": {
				this.#generation = new AbortController();
				void generate(this.#generation.signal).then((ok) =>
					this.dispatch({ kind: "generated", ok }),
				);
				return;
			}
			case "cancel-generation":
				this.#generation.abort();
				return;
			case "spawn":
				this.#children.set(effect.id, spawn(effect.id));
				return;
			case "kill":
				this.#children.get(effect.id)?.kill();
				return;
			case "stop": {
				const { id } = effect;
				this.#children.get(id)?.stop();
				const timer = clock.setTimer(stopMs, () => this.dispatch({ kind: "stop-timed-out", id }));
				this.#stops.set(id, timer);
				return;
			}
			case "serve":
				this.#children.get(effect.id)?.serve();
				return;
			case "forward":
				forward(effect.id);
				return;
			case "hold":
				hold();
				return;
			case "report":
				report(effect.event);
				return;
			case "ended":
				this.#ended.resolve();
		}
	}
}
