import type { WorkHold } from "@plinth/controller";
import type { StorageBackend } from "@plinth/storage";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext, Deletion } from "../node/constraint-context.ts";
import type { HolderQuery } from "../protocol/holder-query.ts";
import { Confirmations } from "./confirmations.ts";
import { fencedStorage } from "./fenced-storage.ts";
import { type HandlerResult, soonest } from "./handler-result.ts";
import { LostDeployments } from "./lost-deployments.ts";
import { MetaOwners } from "./meta-owners.ts";
import { OwnedDeletingHandler } from "./owned-deleting-handler.ts";
import { OwnedPendingHandler } from "./owned-pending-handler.ts";
import { OwnerQuery } from "./owner-query.ts";
import { SubscribedDeletingHandler } from "./subscribed-deleting-handler.ts";

/** Options of `HandlersOfHolds`. */
export interface HandlersOptions {
	readonly context: ConstraintContext;
	readonly holderQuery: HolderQuery;
	/** The storage with its constraints. */
	readonly store: StorageBackend;
}

/** What the handlers of all holds of a server share: calls that are sent together. */
interface Shared extends HandlersOptions {
	readonly confirmations: Confirmations;
	readonly ownerQuery: OwnerQuery;
}

/**
 * The handlers of each hold under which this server controls shadows.
 *
 * Invariant: all that handlers write carries the fence of their hold, and what they remember between passes begins with
 * it. So nothing that a former hold has left on this server takes part in a pass.
 */
export class HandlersOfHolds {
	readonly #shared: Shared;
	/** They are forgotten with the hold. */
	readonly #handlers = new WeakMap<object, ShadowHandlers>();

	constructor(options: HandlersOptions) {
		const { context } = options;
		this.#shared = {
			...options,
			confirmations: new Confirmations(context),
			ownerQuery: new OwnerQuery(context),
		};
	}

	/** The handlers of a hold. */
	of(hold: WorkHold): ShadowHandlers {
		const key = isPlanted("keep the handlers of a former hold") ? this.#shared : hold;
		let handlers = this.#handlers.get(key);
		if (handlers === undefined) {
			handlers = new ShadowHandlers(this.#shared, hold);
			this.#handlers.set(key, handlers);
		}
		return handlers;
	}
}

/**
 * Handles the shadows of one hold with three handlers. It has no loop: the caller passes it keys, never the same key
 * concurrently, and retries failed ones with backoff.
 */
export class ShadowHandlers {
	readonly #owners: MetaOwners;
	readonly #pending: OwnedPendingHandler;
	readonly #deleting: OwnedDeletingHandler;
	readonly #subscribed: SubscribedDeletingHandler;

	constructor(shared: Shared, { fence }: WorkHold) {
		const { holderQuery } = shared;
		const fenced = (backend: StorageBackend) =>
			fence === undefined || isPlanted("write without the fence of the shard")
				? backend
				: fencedStorage(backend, fence);
		const { ages: allAges, runtime } = shared.context;
		const ages = isPlanted("measure elapsed times from when a shard was gained")
			? ((gainedMs: number) => ({
					ageMs: (...state: readonly [string, string]) =>
						Math.min(allAges.ageMs(...state), runtime.clock.monotonic() - gainedMs),
				}))(runtime.clock.monotonic())
			: allAges;
		const context = { ...shared.context, ages, backend: fenced(shared.context.backend) };
		const store = fenced(shared.store);
		this.#owners = new MetaOwners(context, store, shared);
		const lost = new LostDeployments(context, store);
		const parts = { owners: this.#owners, lost, confirmations: shared.confirmations };
		this.#pending = new OwnedPendingHandler(context, holderQuery, parts);
		this.#deleting = new OwnedDeletingHandler(context, holderQuery);
		this.#subscribed = new SubscribedDeletingHandler(context, store);
	}

	/** One pass over a shadow of this deployment, by name. */
	async handleShadow(name: string): Promise<HandlerResult> {
		return soonest(await this.#deleting.handle(name), await this.#pending.handle(name));
	}

	/** One pass over the resources that reference a target that is being deleted. */
	handleDeletion(deletion: Deletion): Promise<HandlerResult> {
		return this.#subscribed.handle(deletion);
	}

	/** The registry has changed in a way that concerns the shadow. */
	registryChanged(shadowName: string): void {
		this.#owners.hasten(shadowName);
		this.#pending.hasten(shadowName);
	}

	/** Something no longer references the resource. Returns whether its deletion, for lack of owners, was blocked. */
	released(shadowName: string): boolean {
		return this.#owners.released(shadowName);
	}

	/** The deletion of an owner was announced. */
	checkOwnersSoon(...announced: Parameters<MetaOwners["checkSoon"]>): void {
		this.#owners.checkSoon(...announced);
	}

	/** What a deletion of this deployment waits for may have happened here. */
	hastenShadow(name: string): void {
		this.#deleting.hasten(name);
	}

	/** What a received deletion waits for may have happened here. */
	hastenDeletion(deletion: Deletion): void {
		this.#subscribed.hasten(deletion);
	}

	/** A received deletion is not to be applied any more. */
	forgetDeletion(deletion: Deletion): void {
		this.#subscribed.forget(deletion);
	}

	/** A deployment may no longer reference a resource of this one. */
	hint(shadowName: string, deploymentUid: string): void {
		this.#pending.hint(shadowName, deploymentUid);
		this.#deleting.hint(shadowName);
	}
}
