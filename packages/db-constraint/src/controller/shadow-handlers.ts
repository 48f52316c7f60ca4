import type { StorageBackend } from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { HolderQuery } from "../protocol/holder-query.ts";
import { ConcernedShadows } from "./concerned-shadows.ts";
import { type HandlerResult, soonest } from "./handler-result.ts";
import { LostDeployments } from "./lost-deployments.ts";
import { MetaOwners } from "./meta-owners.ts";
import { OwnedDeletingHandler } from "./owned-deleting-handler.ts";
import { OwnedPendingHandler } from "./owned-pending-handler.ts";
import { type Deletion, SubscribedDeletingHandler } from "./subscribed-deleting-handler.ts";

/** Options of `ShadowHandlers`. */
export interface ShadowHandlersOptions {
	readonly context: ConstraintContext;
	readonly holderQuery: HolderQuery;
	/** The storage with its constraints. */
	readonly store: StorageBackend;
	/** Queues a shadow for another pass. */
	readonly queue: (shadowName: string) => void;
}

/**
 * Handles a share of the shadows with three handlers. It has no loop: the caller passes it keys, never the
 * same key concurrently, and retries failed ones with backoff.
 */
export class ShadowHandlers {
	readonly #owners: MetaOwners;
	readonly #pending: OwnedPendingHandler;
	readonly #deleting: OwnedDeletingHandler;
	readonly #subscribed: SubscribedDeletingHandler;
	readonly #context: ConstraintContext;
	readonly #queue: (shadowName: string) => void;

	constructor({ context, holderQuery, store, queue }: ShadowHandlersOptions) {
		this.#context = context;
		this.#queue = queue;
		const owners = new MetaOwners(context, store);
		this.#owners = owners;
		this.#pending = new OwnedPendingHandler(
			context,
			holderQuery,
			owners,
			new LostDeployments(context, store),
		);
		this.#deleting = new OwnedDeletingHandler(context, holderQuery);
		this.#subscribed = new SubscribedDeletingHandler(context, store, (name, ...deletion) => {
			owners.checkSoon(name, ...deletion);
			queue(name);
		});
	}

	/** One pass over a shadow of this deployment, by name. */
	async handleShadow(name: string): Promise<HandlerResult> {
		return soonest(await this.#deleting.handle(name), await this.#pending.handle(name));
	}

	/** One pass over the resources that reference a target that is being deleted. */
	handleDeletion(deletion: Deletion): Promise<HandlerResult> {
		return this.#subscribed.handle(deletion);
	}

	/** Queues the shadows that each change of the registry concerns, until the returned function is called. */
	followEnvironment(): () => void {
		return new ConcernedShadows(this.#context).follow((name) => {
			this.#owners.hasten(name);
			this.#queue(name);
		});
	}

	/** What a deletion of this deployment waits for may have happened here. */
	hastenShadow(name: string): void {
		this.#deleting.hasten(name);
	}

	/** What a received deletion waits for may have happened here. */
	hastenDeletion(deletion: Deletion): void {
		this.#subscribed.hasten(deletion);
	}

	/** A deployment may no longer reference a resource of this one. */
	hint(shadowName: string, deploymentUid: string): void {
		this.#pending.hint(shadowName, deploymentUid);
		this.#deleting.hint(shadowName);
	}
}
