import { ConnectError } from "@connectrpc/connect";
import type { Logger } from "@plinth/runtime";
import { routeTo } from "./asking.ts";
import type { ConstraintContext, Hints, Release } from "./constraint-context.ts";
import type { KeyLike } from "./resource-key.ts";

/** Who takes hints. */
export interface HintTaker {
	askSoon(shadowName: string, deploymentUid: string): void;
	deleting(deploymentUid: string, target: KeyLike, targetUid: string): void;
}

/** How many hints wait for one deployment at most; more are forgotten. */
const waitingLimit = 1_000;

/**
 * Passes hints on: to other deployments in calls, one at a time for each, and to whoever looks after
 * the shadows here. None is needed for anything to be right, only for it to be soon.
 */
export class HintsChannel implements Hints {
	readonly #takers = new Set<HintTaker>();
	readonly #waiting = new Map<string, Release[]>();
	readonly #logger: Logger;
	readonly #context: () => Pick<ConstraintContext, "environment" | "limits">;

	constructor(logger: Logger, context: () => Pick<ConstraintContext, "environment" | "limits">) {
		this.#logger = logger;
		this.#context = context;
	}

	/** Adds a taker, until what is returned is called. */
	addTaker(taker: HintTaker): () => void {
		this.#takers.add(taker);
		return () => this.#takers.delete(taker);
	}

	askSoon(shadowName: string, deploymentUid: string): void {
		for (const taker of this.#takers) {
			taker.askSoon(shadowName, deploymentUid);
		}
	}

	deleting(deploymentUid: string, target: KeyLike, targetUid: string): void {
		for (const taker of this.#takers) {
			taker.deleting(deploymentUid, target, targetUid);
		}
	}

	released(releases: readonly Release[]): void {
		for (const release of releases) {
			const waiting = this.#waiting.get(release.deploymentUid);
			if (waiting === undefined) {
				this.#waiting.set(release.deploymentUid, [release]);
				void this.#send(release.deploymentUid);
			} else if (waiting.length < waitingLimit) {
				waiting.push(release);
			}
		}
	}

	/** Sends what waits for a deployment, until nothing does. Never rejects. */
	async #send(uid: string): Promise<void> {
		const context = this.#context();
		for (let waiting = this.#waiting.get(uid); waiting?.length; waiting = this.#waiting.get(uid)) {
			this.#waiting.set(uid, []);
			try {
				await context.environment.client(uid).reportReleases(
					{
						route: routeTo(context, uid),
						releases: waiting.map(({ target, targetUid }) => ({
							target: { ...target },
							targetUid,
						})),
					},
					{ timeoutMs: context.limits.callMs },
				);
			} catch (failure) {
				this.#logger.debug(
					{ err: ConnectError.from(failure), deployment: uid },
					"hints of released references were lost",
				);
			}
		}
		this.#waiting.delete(uid);
	}
}
