import type { Clock } from "@plinth/runtime";
import type { EtcdClient } from "../client/etcd-client.ts";

/** The dependencies of the leases of periods. */
export interface PeriodLeasesContext {
	readonly client: Pick<EtcdClient, "grantLease">;
	readonly clock: Clock;
	/** The shortest period, in milliseconds; a minute if absent. */
	readonly leastPeriodMs?: number;
}

const minuteMs = 60_000;
/** How many periods a time to live has at most, and so how many leases of one server exist at the same time. */
const mostPeriods = 60;

/**
 * Leases that remove keys from etcd after a time to live. All keys of one period share a lease, which is not renewed:
 *
 * ```
 *   lease     granted                  no longer used                   expires, and its keys are removed
 *             ├────────────────────────┼────────────────────────────────┤
 *                     period                      time to live
 * ```
 *
 * So a key is removed up to one period later than its time to live says: a minute, or a sixtieth of that time.
 */
export class PeriodLeases {
	readonly #context: PeriodLeasesContext;
	#lease: { readonly id: bigint; readonly ttlMs: number; readonly untilMs: number } | undefined;

	constructor(context: PeriodLeasesContext) {
		this.#context = context;
	}

	/**
	 * The lease for keys that are written now.
	 *
	 * @throws EtcdError; the signal's reason.
	 */
	async current(ttlMs: number, signal: AbortSignal): Promise<bigint> {
		const { client, clock, leastPeriodMs = minuteMs } = this.#context;
		const nowMs = clock.monotonic();
		if (this.#lease?.ttlMs === ttlMs && nowMs < this.#lease.untilMs) {
			return this.#lease.id;
		}
		const periodMs = Math.max(leastPeriodMs, ttlMs / mostPeriods);
		const id = await client.grantLease(Math.ceil((ttlMs + periodMs) / 1000), signal);
		// Measured before the request, since the time to live starts when etcd receives it.
		this.#lease = { id, ttlMs, untilMs: nowMs + periodMs };
		return id;
	}

	/** The lease is gone from etcd: another one is granted the next time. */
	forget(id: bigint): void {
		if (this.#lease?.id === id) {
			this.#lease = undefined;
		}
	}
}
