import { ConnectError } from "@connectrpc/connect";
import { Backoff } from "@plinth/runtime";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import { establishWithSuccessor } from "../succession/succession.ts";

/** The backoff of failed reports. */
const reportBackoff = { baseMs: 500, maxMs: 30_000 } as const;

/** Re-establishes references with each successor that appears, in place of its predecessor. */
export class SuccessorReports {
	readonly #context: ConstraintContext;
	/** The reports in progress or completed, by uid of the successor. */
	readonly #reports = new Map<string, Promise<void>>();

	constructor(context: ConstraintContext) {
		this.#context = context;
	}

	/** Starts reports to new successors. */
	begin(signal: AbortSignal): void {
		const { environment } = this.#context;
		const { self } = environment;
		for (const each of environment.deployments()) {
			const { uid, predecessorUid, disabled } = each;
			const isOther = predecessorUid !== "" && uid !== self.uid && !disabled;
			if (isOther && !mayNameMore(each) && !this.#reports.has(uid)) {
				this.#reports.set(uid, this.#report(uid, signal));
			}
		}
	}

	/** Resolves when no report is in progress, after the signal has aborted. */
	async ended(): Promise<void> {
		await Promise.all(this.#reports.values());
	}

	/** Retries until it succeeds, the signal aborts, or the successor is no longer known, or is recovering. */
	async #report(uid: string, signal: AbortSignal): Promise<void> {
		const { environment, runtime, logger } = this.#context;
		const backoff = new Backoff({ ...reportBackoff, clock: runtime.clock });
		while (!signal.aborted) {
			const successor = environment.byUid(uid);
			if (successor === undefined || mayNameMore(successor)) {
				this.#reports.delete(uid);
				return;
			}
			try {
				await establishWithSuccessor(this.#context, successor, signal);
				return;
			} catch (failure) {
				logger.debug(
					{ err: ConnectError.from(failure), successor: uid },
					"references could not be established with a successor",
				);
			}
			if (isPlanted("report to a successor in one attempt")) {
				return;
			}
			await backoff.wait(signal).catch(() => {});
		}
	}
}

/**
 * Whether it may have taken over more than it names. A meta deployment that is recovering is told of what restores before
 * have undone. Once it is complete, it names that too; before, it deletes nothing anyway.
 */
function mayNameMore({ recovering = false }: DeploymentInfo): boolean {
	return recovering && !isPlanted("report to a meta deployment that is recovering");
}
