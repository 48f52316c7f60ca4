import { Lifecycle, type Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Clock } from "@plinth/runtime";
import type { ConstraintContext } from "./constraint-context.ts";
import { isHeld } from "./shadow.ts";
import type { StoredShadow } from "./shadow-records.ts";

/**
 * What a resource may wait for: `pending` is that something is left to be done after a commit (a tentative
 * source, a task), `checking` that a deletion asks, `deleting` that all who hold it let go.
 */
export type WaitingState = "pending" | "checking" | "deleting";

/** What there is to measure of the references of a deployment, as this server knows it now. */
export interface ReferenceMetrics {
	/** Deployments that reference a resource, over all resources. */
	readonly sources: { readonly confirmed: number; readonly tentative: number };
	/** Resources that wait, and for how long this server has seen the one that waits longest, in ms. */
	readonly waiting: Readonly<
		Record<WaitingState, { readonly count: number; readonly oldestMs: number }>
	>;
	/** Deletions that somebody who holds the resource has still to follow. */
	readonly cascades: number;
	/** Questions to other deployments whether they hold a resource. */
	readonly questions: readonly QuestionCount[];
}

/** How many questions a deployment was asked; `failed` counts those that it did not answer. */
export interface QuestionCount {
	readonly service: string;
	readonly region: string;
	readonly asked: number;
	readonly failed: number;
}

/** Deployments whose questions are counted each; those of more are counted as one without a name. */
const countedDeployments = 256;

/**
 * Counts while shadows change, so that nothing is gone through when somebody asks: what a shadow counts
 * for is taken off before its successor is counted.
 */
export class MeasuredReferences {
	readonly #clock: Clock;
	readonly #environment: ConstraintContext["environment"];
	readonly #sources = { confirmed: 0, tentative: 0 };
	#cascades = 0;
	/** Since when what waits has done so, on the monotonic clock, by the name of the shadow. */
	readonly #waiting: Readonly<Record<WaitingState, Map<string, number>>> = {
		pending: new Map(),
		checking: new Map(),
		deleting: new Map(),
	};
	readonly #questions = new Map<
		string,
		{ -readonly [K in keyof QuestionCount]: QuestionCount[K] }
	>();

	/** Follows the index of the context, for as long as that is used. */
	constructor({ index, environment, runtime }: ConstraintContext) {
		this.#clock = runtime.clock;
		this.#environment = environment;
		index.onChange((stored, change, before) => {
			if (before !== undefined) {
				this.#count(before.shadow, -1);
			}
			if (change === "stored") {
				this.#count(stored.shadow, 1);
			}
			this.#note(stored, change === "stored");
		});
	}

	/** Counts questions that a deployment was asked together, and has answered or not. */
	readonly asked = (uid: string, questions: number, answered: boolean): void => {
		const known = this.#environment.deployments().find((each) => each.uid === uid);
		let key = JSON.stringify([known?.service, known?.region]);
		let named = { service: known?.service ?? "", region: known?.region ?? "" };
		if (!this.#questions.has(key) && this.#questions.size >= countedDeployments) {
			key = "";
			named = { service: "", region: "" };
		}
		const count = this.#questions.get(key) ?? { ...named, asked: 0, failed: 0 };
		count.asked += questions;
		count.failed += answered ? 0 : questions;
		this.#questions.set(key, count);
	};

	/** The numbers now. */
	read(): ReferenceMetrics {
		return {
			sources: { ...this.#sources },
			waiting: {
				pending: this.#oldest("pending"),
				checking: this.#oldest("checking"),
				deleting: this.#oldest("deleting"),
			},
			cascades: this.#cascades,
			questions: [...this.#questions.values()].map((count) => ({ ...count })),
		};
	}

	#count(shadow: Shadow, sign: 1 | -1): void {
		for (const { tentative } of shadow.sources) {
			this.#sources[tentative ? "tentative" : "confirmed"] += sign;
		}
		if (shadow.lifecycle === Lifecycle.DELETING && isHeld(shadow)) {
			this.#cascades += sign;
		}
	}

	#note({ name, shadow }: StoredShadow, isStored: boolean): void {
		const now = isStored ? stateOf(shadow) : undefined;
		for (const state of ["pending", "checking", "deleting"] as const) {
			const waiting = this.#waiting[state];
			if (state !== now) {
				waiting.delete(name);
			} else if (!waiting.has(name)) {
				waiting.set(name, this.#clock.monotonic());
			}
		}
	}

	/** They are in the order in which they came: the first has waited longest. */
	#oldest(state: WaitingState): { readonly count: number; readonly oldestMs: number } {
		const waiting = this.#waiting[state];
		const [since] = waiting.values();
		return {
			count: waiting.size,
			oldestMs: since === undefined ? 0 : this.#clock.monotonic() - since,
		};
	}
}

function stateOf(shadow: Shadow): WaitingState | undefined {
	switch (shadow.lifecycle) {
		case Lifecycle.CHECKING:
			return "checking";
		case Lifecycle.DELETING:
			return "deleting";
		default:
			return shadow.tasks.length > 0 || shadow.sources.some(({ tentative }) => tentative)
				? "pending"
				: undefined;
	}
}
