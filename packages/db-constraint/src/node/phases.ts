import { type Logger, unlessAborted } from "@plinth/runtime";

/**
 * What the references of a server have reached, in this order:
 *
 *     schema-begun ─▶ discovered ─▶ succession-settled ─▶ serving ─┬─▶ schema-complete ─▶ announced
 *                                                                  └─▶ controlled
 *
 * - `schema-begun`: no server with another schema can commit.
 * - `discovered`: the deployment is registered, and the other deployments are known.
 * - `succession-settled`: if the storage was restored, its references are established under its new uid.
 * - `serving`: writes are accepted.
 * - `schema-complete`: the references of all stored resources are derived by this schema.
 * - `announced`: other deployments know which version this one serves.
 * - `controlled`: the controllers of references run, on this server for the shards that it holds.
 *
 * The controllers do not wait for the schema, which can't be completed while a deployment is down that its references
 * name. Without other deployments the schema is completed before `serving`, and the phases that concern others are
 * reached at once.
 */
export type ReferencesPhase = (typeof referencesPhases)[number];

/** All phases, in their order. */
export const referencesPhases = [
	"schema-begun",
	"discovered",
	"succession-settled",
	"serving",
	"schema-complete",
	"announced",
	"controlled",
] as const;

/** How far the references of a server are. */
export interface ReferencesState {
	/** The phases that were reached, in the order in which they were. */
	readonly reached: readonly ReferencesPhase[];
	/** The last problem of each step that is tried again now, by what it does, such as `announce the version`. */
	readonly problems: ReadonlyMap<string, string>;
	/**
	 * When the registry of deployments was up to date last, if a meta deployment can't be followed now: by the wall clock of
	 * a server of this deployment.
	 */
	readonly registryOutdatedSince?: Date | undefined;
	/**
	 * The deployments that have not reported to this meta deployment since its storage was restored, by name and uid. Until
	 * they have, or their Deployments are deleted, its registry is not complete. Default: none.
	 */
	readonly awaitedReports?: readonly string[];
	/** Why this server refuses all writes, if another schema has become active. */
	readonly superseded?: string | undefined;
}

/** The phases that have been reached. A phase is reached once, and stays so. */
export class Phases {
	readonly #logger: Logger;
	readonly #reached = new Set<ReferencesPhase>();
	readonly #waiting = new Map<ReferencesPhase, PromiseWithResolvers<void>>();

	constructor(logger: Logger) {
		this.#logger = logger;
	}

	get reached(): readonly ReferencesPhase[] {
		return [...this.#reached];
	}

	has(phase: ReferencesPhase): boolean {
		return this.#reached.has(phase);
	}

	reach(phase: ReferencesPhase): void {
		if (this.#reached.has(phase)) {
			return;
		}
		this.#reached.add(phase);
		this.#logger.debug({ phase }, "references have reached a phase");
		this.#waiting.get(phase)?.resolve();
		this.#waiting.delete(phase);
	}

	/** Resolves once the phase is reached. Rejects with the reason of the signal if it aborts first. */
	async until(phase: ReferencesPhase, signal: AbortSignal): Promise<void> {
		if (this.#reached.has(phase)) {
			return;
		}
		const waiting = this.#waiting.get(phase) ?? Promise.withResolvers<void>();
		this.#waiting.set(phase, waiting);
		await unlessAborted(waiting.promise, signal);
	}
}
