/**
 * Completes the work that commits leave, for resources of this deployment:
 *
 * - A committed reference to another deployment: ConfirmBlockades is called until it succeeds, then the task
 *   is removed.
 * - A tentative source: its reference may never be committed. When the source has been seen for long enough,
 *   its deployment is *queried*: a "no" drops the source, a "yes" confirms it, no response changes nothing.
 * - A source whose deployment may have released the resource, according to a hint: it is queried too.
 * - CHECKING that has been seen for too long: the server that checked has died, and the shadow becomes ACTIVE
 *   again. If that server was only slow, its commit fails.
 * - A reference without a target, because its schema is younger than the resource, or a restore has lost the target: that is
 *   looked up again (see lookup-pauses).
 * - Owner references: the owners' deployments are queried (see meta-owners).
 *
 * The tasks of a resource are removed with it: its deletion waits for none of them.
 *
 *     source:  tentative ──confirmed, or queried and "yes"──▶ confirmed
 *                  └──────────── queried and "no" ──────────▶ dropped
 */
import {
	Lifecycle,
	type ResourceKey,
	type Shadow,
	type Source,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { targetPlace } from "../deployments/target-place.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { type HolderQuery, isReleased } from "../protocol/holder-query.ts";
import { deriveReferences } from "../schema/derive-references.ts";
import { targetOf } from "../shadow/recorded-reference.ts";
import { keyString, nameOfKey } from "../shadow/resource-key.ts";
import { sameTarget, sourceOf, withoutDeployment, withSource } from "../shadow/shadow.ts";
import { readShadow, type StoredShadow } from "../shadow/shadow-records.ts";
import { replaceShadow, updateShadow } from "../shadow/shadow-update.ts";
import { checkingState, tentativeState } from "../shadow/waiting-ages.ts";
import type { Confirmations } from "./confirmations.ts";
import { done, type HandlerResult, soonest } from "./handler-result.ts";
import { LookupPauses } from "./lookup-pauses.ts";
import type { LostDeployments } from "./lost-deployments.ts";
import type { MetaOwners } from "./meta-owners.ts";

/** See the comment at the top of this file. */
export class OwnedPendingHandler {
	readonly #context: ConstraintContext;
	readonly #holderQuery: HolderQuery;
	readonly #owners: MetaOwners;
	readonly #lost: LostDeployments;
	readonly #confirmations: Confirmations;
	readonly #lookups: LookupPauses;
	/** The deployments to query because of hints, by the name of the shadow. */
	readonly #hinted = new Map<string, Set<string>>();

	constructor(
		context: ConstraintContext,
		holderQuery: HolderQuery,
		{
			owners,
			lost,
			confirmations,
		}: {
			readonly owners: MetaOwners;
			readonly lost: LostDeployments;
			readonly confirmations: Confirmations;
		},
	) {
		this.#context = context;
		this.#holderQuery = holderQuery;
		this.#owners = owners;
		this.#lost = lost;
		this.#confirmations = confirmations;
		this.#lookups = new LookupPauses(context.runtime.clock, context.limits);
	}

	/** Queries a deployment in the next pass over the shadow. Excess hints are dropped. */
	hint(shadow: string, deploymentUid: string): void {
		const hinted = this.#hinted.get(shadow) ?? new Set();
		if (hinted.size < hintsPerShadow && this.#hinted.size < hintedShadows) {
			this.#hinted.set(shadow, hinted.add(deploymentUid));
		}
	}

	/** One pass over a shadow, by its name. Rejects if something failed and must be retried. */
	async handle(name: string): Promise<HandlerResult> {
		const stored = await readShadow(this.#context.backend, name);
		if (stored === undefined) {
			this.#forget(name);
			return done;
		}
		if (
			stored.shadow.lifecycle === Lifecycle.CHECKING ||
			(isPlanted("revert DELETING") && stored.shadow.lifecycle === Lifecycle.DELETING)
		) {
			return this.#revertCheck(stored);
		}
		if (stored.shadow.lifecycle === Lifecycle.DELETING) {
			// The deletion itself queries all sources.
			this.#hinted.delete(name);
			return this.#owners.check(stored);
		}
		const hinted = this.#hinted.get(name) ?? new Set();
		this.#hinted.delete(name);
		const results = await Promise.allSettled([
			this.#confirmAll(stored),
			this.#resolve(stored),
			this.#lost.check(stored),
			...stored.shadow.sources.map((source) =>
				this.#settle(stored, source, hinted.has(source.deployment?.uid ?? "")),
			),
			this.#owners.check(stored),
		]);
		return soonest(
			...results.map((result) => {
				if (result.status === "rejected") {
					throw result.reason;
				}
				return result.value;
			}),
		);
	}

	/** The registry has changed where a missing target of the shadow may be. */
	hasten(name: string): void {
		this.#lookups.reset(name);
	}

	#forget(name: string): void {
		this.#hinted.delete(name);
		this.#lookups.reset(name);
		this.#owners.forget(name);
	}

	async #revertCheck(stored: StoredShadow): Promise<HandlerResult> {
		const { ages, limits } = this.#context;
		const { checkingMs } = limits;
		const age = ages.ageMs(stored.name, checkingState(stored));
		if (age < checkingMs || isPlanted("leave a check of a crashed server CHECKING")) {
			return { requeueAfterMs: checkingMs - age };
		}
		await replaceShadow(this.#context, stored, { ...stored.shadow, lifecycle: Lifecycle.ACTIVE });
		return done;
	}

	/** Looks up targets that are missing, if that is due. */
	async #resolve({ name, shadow }: StoredShadow): Promise<HandlerResult> {
		if (shadow.resource === undefined || !isMissing(shadow)) {
			this.#lookups.reset(name);
			return done;
		}
		const waitMs = this.#lookups.waitMs(name, shadow);
		if (waitMs > 0) {
			return { requeueAfterMs: waitMs };
		}
		this.#lookups.begin(name);
		await this.#lookUp(shadow, shadow.resource);
		const left = (await readShadow(this.#context.backend, name))?.shadow;
		return left !== undefined && isMissing(left)
			? { requeueAfterMs: this.#lookups.failed(name, left) }
			: done;
	}

	/**
	 * A deployment that can't be reached does not keep the targets of others from being found: after a failure, those of each one are
	 * looked up on their own.
	 */
	async #lookUp({ outgoing }: Shadow, resource: ResourceKey): Promise<void> {
		const name = nameOfKey(resource);
		try {
			await deriveReferences(this.#context, name);
		} catch (failure) {
			const missing = outgoing.filter(({ targetUid }) => targetUid === "");
			const places = Map.groupBy(missing, (each) => {
				const { uid, service, region } = targetPlace(this.#context, each);
				return `${uid} ${service} ${region}`;
			});
			if (places.size === 1 || isPlanted("look up the targets of all deployments together")) {
				throw failure;
			}
			for (const same of places.values()) {
				const targets = new Set(same.map(targetOf));
				await deriveReferences(this.#context, name, {
					reestablish: () => false,
					isMissing: (target) => !targets.has(keyString(target)),
				}).catch(() => {});
			}
			throw failure;
		}
	}

	/** Confirms all committed references, and removes the completed tasks in one change of the shadow. */
	async #confirmAll({ name, shadow }: StoredShadow): Promise<HandlerResult> {
		const tasks = shadow.tasks.flatMap(({ task }) => (task.case === "confirm" ? task.value : []));
		if (tasks.length === 0) {
			return done;
		}
		const outcomes = await Promise.allSettled(
			tasks.map((task) => this.#confirmations.confirm(task)),
		);
		const confirmed = tasks.filter((_, i) => outcomes[i]?.status === "fulfilled");
		await updateShadow(this.#context, name, ({ shadow: now }) => {
			if (now.lifecycle === Lifecycle.CHECKING) {
				// A deletion is being checked and needs the shadow unchanged. Its next change triggers another pass.
				return undefined;
			}
			const left = now.tasks.filter(
				({ task }) =>
					task.case !== "confirm" ||
					!confirmed.some(
						({ establishment, target }) =>
							task.value.establishment === establishment && sameTarget(task.value.target, target),
					),
			);
			return left.length === now.tasks.length ? undefined : { ...now, tasks: left };
		});
		for (const outcome of outcomes) {
			if (outcome.status === "rejected") {
				throw outcome.reason;
			}
		}
		return done;
	}

	/** Queries the deployment of a source if needed. Only a deletion drops the source of this deployment. */
	async #settle(stored: StoredShadow, source: Source, isHinted: boolean): Promise<HandlerResult> {
		const { ages, environment, limits } = this.#context;
		const { deployment, tentative } = source;
		if (deployment === undefined || deployment.uid === environment.self.uid) {
			if (isPlanted("drop the own source outside CHECKING")) {
				const { resource } = stored.shadow;
				const isUsed = !resource || !this.#context.index.referencing(resource).next().done;
				const next = withoutDeployment(stored.shadow, environment.self.uid);
				await (isUsed ? undefined : replaceShadow(this.#context, stored, next));
			}
			return done;
		}
		if (!(tentative || isHinted)) {
			return done;
		}
		if (!isHinted) {
			const age = ages.ageMs(stored.name, tentativeState(source));
			if (age < limits.tentativeMs) {
				return { requeueAfterMs: limits.tentativeMs - age };
			}
		}
		if (isPlanted("drop on expiry without a query") && !isHinted) {
			const next = withoutDeployment(stored.shadow, deployment.uid);
			await replaceShadow(this.#context, stored, next);
			return done;
		}
		const response = await this.#holderQuery.one(stored, deployment);
		if (response.kind === "unknown") {
			return { requeueAfterMs: limits.requeryMs };
		}
		if (isReleased(response)) {
			const checked = isPlanted("drop a source without compare-and-swap")
				? ((await readShadow(this.#context.backend, stored.name)) ?? stored)
				: stored;
			const next = withoutDeployment(checked.shadow, deployment.uid);
			const replaced = await replaceShadow(this.#context, checked, next);
			return replaced === "conflict" ? { requeueAfterMs: limits.maxRetryDelayMs } : done;
		}
		await this.#markConfirmed(stored, source);
		return done;
	}

	/** Confirms a source whose deployment reports the reference, which it has therefore committed. */
	async #markConfirmed(stored: StoredShadow, source: Source): Promise<void> {
		await updateShadow(this.#context, stored.name, ({ shadow }) => {
			const now = sourceOf(shadow, source.deployment?.uid ?? "");
			return now?.tentative &&
				now.establishment === source.establishment &&
				shadow.lifecycle === Lifecycle.ACTIVE
				? withSource(shadow, { ...now, tentative: false })
				: undefined;
		});
	}
}

const hintsPerShadow = 64;
const hintedShadows = 10_000;

function isMissing({ tasks }: Shadow): boolean {
	return tasks.some(({ task }) => task.case === "resolve");
}
