import { Code, ConnectError, createClient } from "@connectrpc/connect";
import type { ReportCall, ReportingCluster, ServerReport } from "@plinth/controller";
import {
	type Overview,
	ServerService,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { tokenHash, tokenHeader } from "@plinth/resource-service";
import type { Clock } from "@plinth/runtime";
import { tokenIn } from "../cluster/other-servers.ts";
import { mergeOverviews, type OverviewReports } from "./merge-overviews.ts";

/** Options of `SharedOverviews`. */
export interface SharedOverviewsOptions {
	/** The overview of this server alone, without rates. */
	readonly own: () => Overview;
	readonly cluster: ReportingCluster;
	readonly clock: Clock;
	/** Ends questions to other servers. */
	readonly end: AbortSignal;
}

/** An overview is shared by all calls that begin within this time. Half of the shortest interval of a stream. */
const sharedForMs = 500;

/** Rates are measured since an overview that is not older. */
const rememberedForMs = 120_000;

/** For so many tokens at most: a server that needs no token admits any. The one used least recently is forgotten first. */
const rememberedTokens = 256;

/**
 * The overviews of all calls. Calls at about the same time share one, so that its cost does not grow with the number of
 * viewers; without calls, nothing is computed.
 *
 * Only calls with the same token share what other servers report: each server decides itself what a token may see.
 */
export class SharedOverviews {
	readonly #options: SharedOverviewsOptions;
	/** By the hash of the token, in the order of the last use. */
	readonly #byToken = new Map<
		string,
		{ readonly shared: SharedOverview; readonly usedMs: number }
	>();
	readonly #ofThisServer: SharedOverview;
	/** The newest own overview, for all tokens. */
	#own: { readonly overview: Overview; readonly takenMs: number } | undefined;

	constructor(options: SharedOverviewsOptions) {
		this.#options = options;
		this.#ofThisServer = new SharedOverview(options.clock, async () => this.#reportsOf([]));
	}

	/** An overview for a call, which must be allowed to see it. */
	async take(call: ReportCall, thisServerOnly: boolean): Promise<Overview> {
		const shared = thisServerOnly ? this.#ofThisServer : this.#of(call);
		return shared.take(call);
	}

	#of(call: ReportCall): SharedOverview {
		const { clock } = this.#options;
		const key = tokenHash(tokenIn(call) ?? "");
		const shared =
			this.#byToken.get(key)?.shared ??
			new SharedOverview(clock, (first) => this.#ofAllServers(first));
		this.#byToken.delete(key);
		this.#byToken.set(key, { shared, usedMs: clock.monotonic() });
		this.#forgetOld();
		return shared;
	}

	async #ofAllServers(call: ReportCall): Promise<OverviewReports> {
		const { cluster, end } = this.#options;
		const token = tokenIn(call);
		// Other calls with the token share it: it must not end with this one, or depend on its other headers.
		const detached: ReportCall = {
			...{ values: call.values, signal: end },
			requestHeader: new Headers(token === undefined ? {} : { [tokenHeader]: token }),
			timeoutMs: () => undefined,
		};
		return this.#reportsOf(await cluster.askOthers(detached, askOne));
	}

	#reportsOf(others: readonly ServerReport<Overview>[]): OverviewReports {
		const own = this.#ownNow();
		const named = others.flatMap(({ server, ...report }) =>
			server === undefined ? [] : [{ server, ...report }],
		);
		return { own, all: [{ server: this.#options.cluster.own, response: own }, ...named] };
	}

	#ownNow(): Overview {
		const nowMs = this.#options.clock.monotonic();
		if (this.#own === undefined || nowMs - this.#own.takenMs >= sharedForMs) {
			this.#own = { overview: this.#options.own(), takenMs: nowMs };
		}
		return this.#own.overview;
	}

	#forgetOld(): void {
		const nowMs = this.#options.clock.monotonic();
		for (const [key, { usedMs }] of this.#byToken) {
			if (this.#byToken.size <= rememberedTokens && nowMs - usedMs <= rememberedForMs) {
				break;
			}
			this.#byToken.delete(key);
		}
	}
}

/** An overview that calls share, and the one before, since which rates are measured. */
class SharedOverview {
	readonly #clock: Clock;
	readonly #collect: (call: ReportCall) => Promise<OverviewReports>;
	#current: { readonly overview: Promise<Overview>; readonly begunMs: number } | undefined;
	#isCollecting = false;
	#before: { readonly reports: OverviewReports; readonly begunMs: number } | undefined;

	constructor(clock: Clock, collect: (call: ReportCall) => Promise<OverviewReports>) {
		this.#clock = clock;
		this.#collect = collect;
	}

	take(call: ReportCall): Promise<Overview> {
		const begunMs = this.#clock.monotonic();
		if (
			this.#current === undefined ||
			(!this.#isCollecting && begunMs - this.#current.begunMs >= sharedForMs)
		) {
			this.#current = { overview: this.#next(call, begunMs), begunMs };
		}
		return this.#current.overview;
	}

	async #next(call: ReportCall, begunMs: number): Promise<Overview> {
		this.#isCollecting = true;
		try {
			const reports = await this.#collect(call);
			const before =
				this.#before !== undefined && begunMs - this.#before.begunMs <= rememberedForMs
					? this.#before.reports
					: undefined;
			this.#before = { reports, begunMs };
			return mergeOverviews(reports, before);
		} catch (error) {
			this.#current = undefined;
			throw error;
		} finally {
			this.#isCollecting = false;
		}
	}
}

/** Asks another server for an overview of itself. */
async function askOne(
	...[transport, options]: Parameters<Parameters<ReportingCluster["askOthers"]>[1]>
): Promise<Overview | undefined> {
	try {
		const client = createClient(ServerService, transport);
		return (await client.getOverview({ thisServerOnly: true }, options)).overview;
	} catch (error) {
		throw error instanceof ConnectError && error.code === Code.Unimplemented
			? new ConnectError("an older server has no overview", Code.Unavailable)
			: error;
	}
}
