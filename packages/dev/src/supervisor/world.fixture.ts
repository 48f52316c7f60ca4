import {
	type ChildId,
	initialSupervision,
	type Supervision,
	type SupervisionEffect,
	type SupervisionEvent,
	type supervise,
} from "./supervision.ts";

/** What a version of the code does: it is loaded and serves, can't be loaded, can't be started, or crashes. */
export type Quality = "serves" | "not-loaded" | "not-started" | "exits-at-import";

/** A child of the simulation. */
interface SimulatedChild {
	readonly id: ChildId;
	readonly quality: Quality;
	/** The number of the version that it imports. */
	readonly version: number;
	phase: "loading" | "loaded" | "starting" | "serving" | "stopping";
	/** Whether it has been told to open the data. */
	holds: boolean;
	isKilled: boolean;
}

/** A simulation of everything around a supervisor, which checks what the supervisor does. */
export class World {
	readonly #supervise: typeof supervise;
	readonly #children = new Map<ChildId, SimulatedChild>();
	readonly violations: string[] = [];
	#state: Supervision = initialSupervision;
	#version = 0;
	#quality: Quality = "serves";
	#isGenerating = false;
	#forwardsTo: ChildId | undefined;
	#ends = 0;
	#hasEndBegun = false;
	#isForced = false;

	constructor(transitions: typeof supervise) {
		this.#supervise = transitions;
	}

	get hasEnded(): boolean {
		return this.#ends > 0;
	}

	get version(): number {
		return this.#version;
	}

	/** The version that serves connections. */
	get served(): number | undefined {
		return this.#forwardsTo === undefined
			? undefined
			: this.#children.get(this.#forwardsTo)?.version;
	}

	/** Files are saved. */
	save(quality: Quality, generate: boolean): void {
		this.#version += 1;
		this.#quality = quality;
		this.#dispatch({ kind: "changed", generate });
	}

	end(force: boolean): void {
		this.#hasEndBegun = true;
		this.#isForced ||= force;
		this.#dispatch({ kind: "end", force });
	}

	/** The steps that can happen next without a user. */
	steps(): readonly (() => void)[] {
		const steps: (() => void)[] = [];
		if (this.#isGenerating) {
			steps.push(() => {
				this.#isGenerating = false;
				this.#dispatch({ kind: "generated", ok: true });
			});
		}
		for (const child of this.#children.values()) {
			steps.push(...this.#stepsOf(child));
		}
		return steps;
	}

	/** Things that go wrong with the child that serves. */
	faults(): readonly (() => void)[] {
		const serving = [...this.#children.values()].filter(({ phase }) => phase === "serving");
		const stopping = [...this.#children.values()].filter(({ phase }) => phase === "stopping");
		return [
			...serving.map((child) => () => this.#exit(child)),
			...stopping.map((child) => () => this.#dispatch({ kind: "stop-timed-out", id: child.id })),
		];
	}

	#stepsOf(child: SimulatedChild): readonly (() => void)[] {
		if (child.isKilled) {
			return [() => this.#exit(child)];
		}
		switch (child.phase) {
			case "loading":
				return [() => this.#load(child)];
			case "starting":
				return [() => this.#start(child)];
			case "stopping":
				return [() => this.#exit(child)];
			default:
				return [];
		}
	}

	#load(child: SimulatedChild): void {
		switch (child.quality) {
			case "exits-at-import":
				this.#exit(child);
				return;
			case "not-loaded":
				child.isKilled = true;
				this.#dispatch({ kind: "failed", id: child.id });
				return;
			default:
				child.phase = "loaded";
				this.#dispatch({ kind: "loaded", id: child.id });
		}
	}

	#start(child: SimulatedChild): void {
		if (child.quality === "not-started") {
			this.#dispatch({ kind: "failed", id: child.id });
			this.#exit(child);
			return;
		}
		child.phase = "serving";
		this.#dispatch({ kind: "ready", id: child.id });
	}

	#exit(child: SimulatedChild): void {
		this.#children.delete(child.id);
		this.#dispatch({ kind: "exited", id: child.id });
	}

	#dispatch(event: SupervisionEvent): void {
		const [state, effects] = this.#supervise(this.#state, event);
		this.#state = state;
		for (const effect of effects) {
			this.#do(effect);
		}
		this.#check();
	}

	#do(effect: SupervisionEffect): void {
		switch (effect.kind) {
			case "generate":
				this.#expect(!this.#isGenerating, "generates twice at the same time");
				this.#isGenerating = true;
				return;
			case "spawn":
				this.#spawn(effect.id);
				return;
			case "kill": {
				const child = this.#children.get(effect.id);
				this.#expect(child !== undefined, "kills a child that has exited");
				if (child !== undefined) {
					const mayKill = !child.holds || child.phase === "stopping" || this.#isForced;
					this.#expect(mayKill, "kills a child that holds the data before it was told to stop");
					child.isKilled = true;
				}
				return;
			}
			case "stop":
				this.#stop(effect.id);
				return;
			case "serve":
				this.#serve(effect.id);
				return;
			case "forward":
				this.#forwardsTo = effect.id;
				return;
			case "hold":
				this.#forwardsTo = undefined;
				return;
			case "ended":
				this.#ends += 1;
				this.#expect(this.#children.size === 0, "has ended, but a child runs");
				return;
			case "cancel-generation":
			case "report":
		}
	}

	#spawn(id: ChildId): void {
		this.#expect(!this.#hasEndBegun, "starts a child after the end");
		this.#expect(!this.#isGenerating, "starts a child while code is generated");
		this.#children.set(id, {
			...{ id, quality: this.#quality, version: this.#version },
			...{ phase: "loading", holds: false, isKilled: false },
		});
	}

	#stop(id: ChildId): void {
		const child = this.#children.get(id);
		const isLoaded = [...this.#children.values()].some(
			({ phase, isKilled }) => phase === "loaded" && !isKilled,
		);
		this.#expect(this.#hasEndBegun || isLoaded, "stops a child before the next one is loaded");
		if (child !== undefined) {
			child.phase = "stopping";
		}
	}

	#serve(id: ChildId): void {
		const child = this.#children.get(id);
		this.#expect(child?.phase === "loaded", "a child that is not loaded is told to serve");
		const others = [...this.#children.values()].filter(({ holds }) => holds);
		this.#expect(others.length === 0, "two children hold the data");
		if (child !== undefined) {
			child.phase = "starting";
			child.holds = true;
		}
	}

	#check(): void {
		if (this.#forwardsTo !== undefined) {
			this.#expect(
				this.#children.get(this.#forwardsTo)?.phase === "serving",
				"connections go to a child that does not serve",
			);
		}
		this.#expect(this.#ends <= 1, "has ended twice");
	}

	#expect(isTrue: boolean, violation: string): void {
		if (!isTrue) {
			this.violations.push(violation);
		}
	}
}
