import { Lifecycle, type Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Clock } from "@plinth/runtime";
import { isHeld } from "../shadow/shadow.ts";
import type { StoredShadow } from "../shadow/shadow-records.ts";
import type { ConstraintContext } from "./constraint-context.ts";

/**
 * What a resource may wait for. `pending`: work is left after a commit (a tentative source, a task).
 * `checking`: a deletion queries the holders. `deleting`: holders have not released the resource yet.
 */
export type WaitReason = "pending" | "checking" | "deleting";

/** Measurements of the references of a deployment, as this server sees them now. */
export interface ReferenceMetrics {
	/** The number of deployments that reference a resource, summed over all resources. */
	readonly sources: { readonly confirmed: number; readonly tentative: number };
	/** The number of waiting resources, and for how long this server has seen the oldest one, in ms. */
	readonly waiting: Readonly<
		Record<WaitReason, { readonly count: number; readonly oldestMs: number }>
	>;
	/** The number of deletions that some holder has not followed yet. */
	readonly cascades: number;
	/** Holder queries to other deployments. */
	readonly holderQueries: readonly HolderQueryCount[];
}

/** The number of holder queries sent to a deployment, and how many of them got no response. */
export interface HolderQueryCount {
	readonly service: string;
	readonly region: string;
	readonly sent: number;
	readonly failed: number;
}

/** The maximum number of deployments that are counted separately. The others share one unnamed count. */
const countedDeployments = 256;

/**
 * Updates the counts on every change of a shadow, so that reading them is cheap: the contribution of the
 * previous shadow is subtracted before that of the new one is added.
 */
export class MeasuredReferences {
	readonly #clock: Clock;
	readonly #environment: ConstraintContext["environment"];
	readonly #sources = { confirmed: 0, tentative: 0 };
	#cascades = 0;
	/** When each waiting shadow entered its state, on the monotonic clock, by name. */
	readonly #waiting: Readonly<Record<WaitReason, Map<string, number>>> = {
		pending: new Map(),
		checking: new Map(),
		deleting: new Map(),
	};
	readonly #queries = new Map<
		string,
		{ -readonly [K in keyof HolderQueryCount]: HolderQueryCount[K] }
	>();

	/** Follows the index of the context for as long as the index exists. */
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
			this.#trackWaiting(stored, change === "stored");
		});
	}

	/** Counts holder queries that were sent to a deployment in one call. */
	readonly countQueries = (uid: string, queries: number, hasResponse: boolean): void => {
		const known = this.#environment.byUid(uid);
		let key = JSON.stringify([known?.service, known?.region]);
		let named = { service: known?.service ?? "", region: known?.region ?? "" };
		if (!this.#queries.has(key) && this.#queries.size >= countedDeployments) {
			key = "";
			named = { service: "", region: "" };
		}
		const count = this.#queries.get(key) ?? { ...named, sent: 0, failed: 0 };
		count.sent += queries;
		count.failed += hasResponse ? 0 : queries;
		this.#queries.set(key, count);
	};

	/** The current measurements. */
	read(): ReferenceMetrics {
		return {
			sources: { ...this.#sources },
			waiting: {
				pending: this.#oldest("pending"),
				checking: this.#oldest("checking"),
				deleting: this.#oldest("deleting"),
			},
			cascades: this.#cascades,
			holderQueries: [...this.#queries.values()].map((count) => ({ ...count })),
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

	#trackWaiting({ name, shadow }: StoredShadow, isStored: boolean): void {
		const now = isStored ? waitingState(shadow) : undefined;
		for (const state of ["pending", "checking", "deleting"] as const) {
			const waiting = this.#waiting[state];
			if (state !== now) {
				waiting.delete(name);
			} else if (!waiting.has(name)) {
				waiting.set(name, this.#clock.monotonic());
			}
		}
	}

	/** The map keeps insertion order: its first entry has waited longest. */
	#oldest(state: WaitReason): { readonly count: number; readonly oldestMs: number } {
		const waiting = this.#waiting[state];
		const [since] = waiting.values();
		return {
			count: waiting.size,
			oldestMs: since === undefined ? 0 : this.#clock.monotonic() - since,
		};
	}
}

function waitingState(shadow: Shadow): WaitReason | undefined {
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
