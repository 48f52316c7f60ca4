import { Backoff, type Logger, type Runtime, sleep } from "@plinth/runtime";
import { peeringLimits } from "../limits.ts";
import { callRegion, oneOf, type RegionCalls } from "./region-source.ts";
import type { OtherRegion } from "./regions.ts";

/** Options of `OfferPolls`. */
export interface OfferPollsOptions extends RegionCalls {
	readonly runtime: Runtime;
	readonly logger: Logger;
}

/** What one region has said last. */
interface Poll {
	readonly backoff: Backoff;
	/** Of the deployment with this uid. */
	uid: string;
	partitions: ReadonlySet<string>;
	omitted: number;
	failure: string;
	/** When it is asked again, on the monotonic clock. */
	dueMs: number;
	/** Whether it has been asked, and has not responded yet. */
	isAsked: boolean;
}

/** Asks other regions which partitions they offer. What one has said last stays while it can't be reached. */
export class OfferPolls {
	readonly #options: OfferPollsOptions;
	readonly #polls = new Map<string, Poll>();

	constructor(options: OfferPollsOptions) {
		this.#options = options;
	}

	/** The partitions that are offered, by region. */
	get offers(): ReadonlyMap<string, ReadonlySet<string>> {
		return new Map([...this.#polls].map(([region, { partitions }]) => [region, partitions]));
	}

	/** Whether the region has offered the partition when it has responded last. */
	isOffered(region: string, partition: string): boolean {
		return this.#polls.get(region)?.partitions.has(partition) ?? false;
	}

	/**
	 * Asks all regions at the same time, and forgets others; those that have failed are asked after growing pauses. Resolves when
	 * all have responded, or when those that have not are no longer waited for: what they say counts when it comes.
	 */
	async poll(regions: readonly OtherRegion[], signal: AbortSignal): Promise<void> {
		const named = new Set(regions.map(({ region }) => region));
		for (const region of this.#polls.keys()) {
			if (!named.has(region)) {
				this.#polls.delete(region);
			}
		}
		const waited = new AbortController();
		const { clock } = this.#options.runtime;
		const pause = sleep(clock, peeringLimits.pollWaitMs, waited.signal).catch(() => {});
		await Promise.race([Promise.all(regions.map((each) => this.#ask(each, signal))), pause]);
		waited.abort(new Error("all regions have responded"));
		signal.throwIfAborted();
	}

	async #ask(deployment: OtherRegion, signal: AbortSignal): Promise<void> {
		const { runtime, logger } = this.#options;
		const { region, uid } = deployment;
		const poll = this.#pollOf(deployment);
		if (poll.isAsked || runtime.clock.monotonic() < poll.dueMs) {
			return;
		}
		poll.isAsked = true;
		try {
			const address = oneOf(deployment.addresses, runtime.random);
			const { client, route } = callRegion(this.#options, deployment, address);
			const call = { signal, timeoutMs: peeringLimits.callMs };
			const { partitions, omitted } = await client.listOffers({ route }, call);
			poll.partitions = new Set(partitions.slice(0, peeringLimits.offers));
			if (omitted !== poll.omitted && omitted > 0) {
				logger.warn(
					{ region, omitted, limit: peeringLimits.offers },
					"the region offers more partitions than can be copied: the last ones are left out",
				);
			}
			poll.omitted = omitted;
			poll.failure = "";
			poll.backoff.reset();
		} catch (failure) {
			poll.dueMs = runtime.clock.monotonic() + poll.backoff.nextDelayMs();
			const reason = failure instanceof Error ? failure.message : String(failure);
			if (reason !== poll.failure && !signal.aborted) {
				logger.warn({ region, uid, reason }, "the region does not say what it offers");
			}
			poll.failure = reason;
		} finally {
			poll.isAsked = false;
		}
	}

	#pollOf({ region, uid }: OtherRegion): Poll {
		const known = this.#polls.get(region);
		if (known?.uid === uid) {
			return known;
		}
		const { clock, random } = this.#options.runtime;
		const { pollMs: baseMs, longestPauseMs: maxMs } = peeringLimits;
		const created: Poll = {
			backoff: new Backoff({ clock, random, baseMs, maxMs }),
			...{ uid, partitions: known?.partitions ?? new Set(), omitted: 0, failure: "" },
			...{ dueMs: 0, isAsked: false },
		};
		this.#polls.set(region, created);
		return created;
	}
}
