import { ConnectError } from "@connectrpc/connect";
import type { Clock, Logger } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import type {
	ConstraintContext,
	Deletion,
	QueryHints,
	ReferenceRelease,
	ReportedReleases,
} from "../node/constraint-context.ts";
import type { Sibling } from "../registry/environment.ts";
import { keyString } from "../shadow/resource-key.ts";
import { shadowName } from "../shadow/shadow.ts";
import { routeTo } from "./holder-query.ts";
import { SiblingFailures } from "./sibling-failures.ts";

/** A report with this header comes from another server of this deployment, and is not forwarded again. */
export const forwardedHeader = "x-plinth-forwarded";

/** Receives the hints that concern this deployment. */
export interface HintListener {
	/**
	 * A deployment may no longer reference the resource of a shadow.
	 *
	 * @returns whether this server controls the shadow.
	 */
	queryHolderSoon(shadowName: string, deploymentUid: string): boolean;
	/** A target of a reference of this deployment is irrevocably being deleted. */
	deleting(deletion: Deletion): void;
}

/** The maximum number of hints that wait for one deployment, or for the other servers. Further ones are dropped. */
const waitingLimit = 1_000;

/** The maximum number of reports in one call. */
const callLimit = 1_000;

/** How long other servers have to accept what is forwarded to them, in milliseconds. */
const forwardTimeoutMs = 1_000;

/** What the channel needs. */
type HintsContext = Pick<ConstraintContext, "environment" | "limits" | "index"> & {
	readonly clock: Clock;
	readonly logger: Logger;
};

/**
 * Delivers hints: to other deployments by calls, one at a time for each, to the listeners of this server, and to the other
 * servers of this deployment if one of them may control what is concerned. Correctness never depends on a hint; hints only
 * make things happen sooner.
 */
export class HintsChannel implements QueryHints {
	readonly #listeners = new Set<HintListener>();
	readonly #waiting = new Map<string, ReferenceRelease[]>();
	/** The deletions that wait to be forwarded, each once. */
	readonly #deletions = new Map<string, Deletion>();
	#isForwarding = false;
	readonly #context: HintsContext;
	readonly #failures: SiblingFailures;

	constructor(context: HintsContext) {
		this.#context = context;
		this.#failures = new SiblingFailures(context);
	}

	/** Adds a listener until the returned function is called. */
	addListener(listener: HintListener): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	reported({ route, releases }: ReportedReleases, isForwarded: boolean): void {
		const uid = route.from?.uid ?? "";
		const unheard = releases.filter(
			({ target }) => target !== undefined && !this.#queryHolderSoon(shadowName(target), uid),
		);
		if (isForwarded || isPlanted("keep reports from the holder of the shard")) {
			return;
		}
		for (let from = 0; from < unheard.length; from += callLimit) {
			void this.#forwardReleases({ route, releases: unheard.slice(from, from + callLimit) });
		}
	}

	deleting(deletion: Deletion): void {
		this.forwarded(deletion);
		const { environment, index } = this.#context;
		const { deploymentUid, target } = deletion;
		// The others see the deletions of this deployment in their indexes, but not that owners are to be checked again.
		const concernsOthers =
			deploymentUid !== environment.self.uid || index.ownedBy(target).next().done === false;
		if (concernsOthers && this.#deletions.size < waitingLimit) {
			this.#deletions.set(`${deploymentUid} ${keyString(target)} ${deletion.targetUid}`, deletion);
			void this.#forwardDeletions();
		}
	}

	forwarded(deletion: Deletion): void {
		for (const listener of this.#listeners) {
			listener.deleting(deletion);
		}
	}

	released(releases: readonly ReferenceRelease[]): void {
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

	#queryHolderSoon(shadow: string, deploymentUid: string): boolean {
		return [...this.#listeners]
			.map((listener) => listener.queryHolderSoon(shadow, deploymentUid))
			.includes(true);
	}

	/** Never rejects. */
	async #forwardReleases({ route, releases }: ReportedReleases): Promise<void> {
		const request = {
			route,
			releases: releases.map(({ target, targetUid }) => ({
				targetUid,
				...(target && { target: { ...target } }),
			})),
		};
		const headers = { [forwardedHeader]: "true" };
		await this.#forward(({ client }) =>
			client.reportReleases(request, { headers, timeoutMs: forwardTimeoutMs }),
		);
	}

	/** Sends the waiting deletions to the other servers until none are left, in one call to each at a time. Never rejects. */
	async #forwardDeletions(): Promise<void> {
		if (this.#isForwarding) {
			return;
		}
		this.#isForwarding = true;
		const { self } = this.#context.environment;
		while (this.#deletions.size > 0) {
			const deletions = [...this.#deletions.values()];
			this.#deletions.clear();
			const request = {
				route: routeTo(this.#context, self.uid),
				deletions: deletions.map(({ target, ...rest }) => ({ ...rest, target: { ...target } })),
			};
			await this.#forward(({ client }) =>
				client.forwardDeletions(request, { timeoutMs: forwardTimeoutMs }),
			);
		}
		this.#isForwarding = false;
	}

	/** Calls all other servers of this deployment. Never rejects. */
	async #forward(call: (sibling: Sibling) => Promise<unknown>): Promise<void> {
		const siblings = this.#context.environment.siblings?.() ?? [];
		this.#failures.keepOnly(new Set(siblings.map(({ address }) => address)));
		await Promise.all(
			siblings.map(async (sibling) => {
				try {
					await call(sibling);
					this.#failures.succeeded(sibling.address);
				} catch (failure) {
					this.#failures.failed(sibling.address, failure);
				}
			}),
		);
	}

	/** Sends the waiting hints of a deployment until none are left. Never rejects. */
	async #send(uid: string): Promise<void> {
		const context = this.#context;
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
					{ timeoutMs: context.limits.callTimeoutMs },
				);
			} catch (failure) {
				context.logger.debug(
					{ err: ConnectError.from(failure), deployment: uid },
					"dropped reports of released references",
				);
			}
		}
		if (!isPlanted("report releases to each deployment once")) {
			this.#waiting.delete(uid);
		}
	}
}
