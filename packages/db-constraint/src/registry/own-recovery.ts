import type { Client } from "@connectrpc/connect";
import type { ResourceService } from "@plinth/proto";
import { Backoff, type Logger, unlessAborted } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import {
	type CompletionOptions,
	completeRecovery,
	listDeletedDeployments,
} from "./meta-recovery.ts";

/** Options of `OwnRecovery`. */
export interface OwnRecoveryOptions extends CompletionOptions {
	/** The resource service of this server. */
	readonly client: () => Client<typeof ResourceService>;
	/** Whether all other meta deployments have been read, which may know of more deployments. */
	readonly areOthersRead: () => boolean;
	/** Whether this meta deployment is known to have a Deployment and the record of its deletion. */
	readonly hasDeleted: () => boolean;
	/** How a deployment is shown to operators, by its uid. */
	readonly display: (uid: string) => string;
	readonly logger: Logger;
}

/** Reports reach any server, and change nothing that this one follows: so it looks again after these intervals. */
const lookAgain = { baseMs: 250, maxMs: 5_000 } as const;

/** The timeout of the deletion of a Deployment that a restore has brought back. */
const deleteTimeoutMs = 60_000;

/**
 * Completes this meta deployment after a restore, once everyone has reported. Each of its servers tries. Then removes the
 * Deployments that the restore has brought back although they were deleted, also those of whose deletion a late report tells.
 */
export class OwnRecovery {
	readonly #options: OwnRecoveryOptions;
	readonly #backoff: Backoff;
	#changed = Promise.withResolvers<void>();
	/** The uids of those that have not reported; `undefined` if it is complete. */
	#awaited: readonly string[] | undefined;

	constructor(options: OwnRecoveryOptions) {
		const { clock, random } = options.runtime;
		this.#options = options;
		this.#backoff = new Backoff({ ...lookAgain, clock, random });
	}

	/** The deployments that have not reported, as operators know them; empty if it is complete. */
	get awaited(): readonly string[] {
		return this.#awaited?.length === 0
			? ["the first deployment"]
			: (this.#awaited?.map(this.#options.display) ?? []);
	}

	/** The registry view has changed. */
	changed(): void {
		this.#changed.resolve();
	}

	/**
	 * Runs until the signal aborts. Once the registry is complete, it reads the storage only when there are deleted
	 * Deployments. Never rejects.
	 */
	async run(signal: AbortSignal): Promise<void> {
		const { logger, hasDeleted } = this.#options;
		let isDone = false;
		while (!signal.aborted) {
			this.#changed = Promise.withResolvers();
			if (!isDone || hasDeleted()) {
				try {
					isDone = await this.#isDone();
				} catch (failure) {
					logger.debug({ err: failure }, "the recovery of this meta deployment has to wait");
				}
			}
			const round = new AbortController();
			const ends = AbortSignal.any([signal, round.signal]);
			const waits = isDone && !hasDeleted() ? [] : [this.#backoff.wait(ends)];
			await Promise.race([this.#whenChanged(ends), ...waits]).catch(() => {});
			// The one that did not come first must not wait any longer.
			round.abort();
		}
	}

	async #whenChanged(signal: AbortSignal): Promise<void> {
		await unlessAborted(this.#changed.promise, signal);
		this.#backoff.reset();
	}

	async #isDone(): Promise<boolean> {
		const { client, areOthersRead, backend } = this.#options;
		if (!areOthersRead()) {
			return false;
		}
		const awaited = await completeRecovery(this.#options);
		this.#tell(awaited);
		if (awaited !== undefined) {
			return false;
		}
		for (const { id } of await listDeletedDeployments(backend)) {
			if (!isPlanted("keep the deleted Deployments that a restore has brought back")) {
				await client().delete({ id }, { timeoutMs: deleteTimeoutMs });
			}
		}
		return true;
	}

	#tell(awaited: readonly string[] | undefined): void {
		const { logger } = this.#options;
		const before = this.#awaited;
		this.#awaited = awaited;
		if (awaited === undefined) {
			if (before !== undefined) {
				logger.info({}, "this meta deployment has recovered from the restore");
			}
		} else if (awaited.join() !== before?.join()) {
			logger.warn(
				{ waitsFor: this.awaited },
				"this meta deployment was restored, and waits until all deployments have reported what they know: delete the Deployments of those that no longer exist",
			);
		}
	}
}
