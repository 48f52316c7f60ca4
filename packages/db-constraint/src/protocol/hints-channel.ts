import type { MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { ReportReleasesRequestSchema } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { Logger } from "@plinth/runtime";
import type {
	ConstraintContext,
	QueryHints,
	ReferenceRelease,
} from "../node/constraint-context.ts";
import type { KeyLike } from "../shadow/resource-key.ts";
import { routeTo } from "./holder-query.ts";

/** A report with this header comes from another server of this deployment, and is not forwarded again. */
export const forwardedHeader = "x-plinth-forwarded";

/** Receives the hints that concern this deployment. */
export interface HintListener {
	queryHolderSoon(shadowName: string, deploymentUid: string): void;
	deleting(deploymentUid: string, target: KeyLike, targetUid: string): void;
}

/** The maximum number of hints that wait for one deployment. Further ones are dropped. */
const waitingLimit = 1_000;

/**
 * Delivers hints: to other deployments by calls, one at a time for each, and to the listeners of this
 * deployment. Correctness never depends on a hint; hints only make things happen sooner.
 */
export class HintsChannel implements QueryHints {
	readonly #listeners = new Set<HintListener>();
	readonly #waiting = new Map<string, ReferenceRelease[]>();
	readonly #logger: Logger;
	readonly #context: () => Pick<ConstraintContext, "environment" | "limits">;

	constructor(logger: Logger, context: () => Pick<ConstraintContext, "environment" | "limits">) {
		this.#logger = logger;
		this.#context = context;
	}

	/** Adds a listener until the returned function is called. */
	addListener(listener: HintListener): () => void {
		this.#listeners.add(listener);
		return () => this.#listeners.delete(listener);
	}

	get isHeard(): boolean {
		return this.#listeners.size > 0;
	}

	forward(request: MessageInitShape<typeof ReportReleasesRequestSchema>): void {
		const { environment, limits } = this.#context();
		for (const client of environment.siblings?.() ?? []) {
			client
				.reportReleases(request, {
					headers: { [forwardedHeader]: "true" },
					timeoutMs: limits.callTimeoutMs,
				})
				.catch((err: unknown) => {
					this.#logger.debug({ err }, "could not forward reports of released references");
				});
		}
	}

	queryHolderSoon(shadowName: string, deploymentUid: string): void {
		for (const listener of this.#listeners) {
			listener.queryHolderSoon(shadowName, deploymentUid);
		}
	}

	deleting(deploymentUid: string, target: KeyLike, targetUid: string): void {
		for (const listener of this.#listeners) {
			listener.deleting(deploymentUid, target, targetUid);
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

	/** Sends the waiting hints of a deployment until none are left. Never rejects. */
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
					{ timeoutMs: context.limits.callTimeoutMs },
				);
			} catch (failure) {
				this.#logger.debug(
					{ err: ConnectError.from(failure), deployment: uid },
					"dropped reports of released references",
				);
			}
		}
		this.#waiting.delete(uid);
	}
}
