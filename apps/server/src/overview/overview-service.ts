import { create } from "@bufbuild/protobuf";
import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import {
	GetOverviewResponseSchema,
	type ServerService,
	type WatchOverviewRequest,
	type WatchOverviewResponse,
	WatchOverviewResponseSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { type Clock, linkedSignal, sleep, unlessAborted } from "@plinth/runtime";
import { withVisibleLeases } from "../leases/lease-overviews.ts";
import type { SharedOverviews } from "./shared-overviews.ts";

/** The rights of a caller that may see overviews. */
export interface OverviewAccess {
	/** Aborts when the rights have changed. */
	readonly ended?: AbortSignal | undefined;
	/** Whether it may hold the lease of a client, and so may see its name. */
	readonly mayHold: (lease: string) => boolean;
}

/** Options of the service. */
export interface ServerServiceOptions {
	readonly overviews: Pick<SharedOverviews, "take">;
	/** @throws ConnectError Unauthenticated or PermissionDenied. */
	readonly admit: (call: HandlerContext) => Promise<OverviewAccess>;
	/** Resolves when the client has taken the last message of a call; `undefined` if it has. */
	readonly whenTaken: (call: HandlerContext) => Promise<void> | undefined;
	readonly clock: Clock;
}

/** The intervals of streams, in milliseconds. */
const intervalsMs = { default: 2_000, least: 1_000, most: 60_000 } as const;

/** Serves overviews of the cluster. */
export function createServerService(
	options: ServerServiceOptions,
): ServiceImpl<typeof ServerService> {
	const { overviews, admit } = options;
	return {
		async getOverview({ thisServerOnly }, call) {
			const { mayHold } = await admit(call);
			const overview = await unlessAborted(overviews.take(call, thisServerOnly), call.signal);
			return create(GetOverviewResponseSchema, { overview: withVisibleLeases(overview, mayHold) });
		},
		watchOverview: (request, call) => watchOverview(options, request, call),
	};
}

async function* watchOverview(
	{ overviews, admit, whenTaken, clock }: ServerServiceOptions,
	{ interval, thisServerOnly }: WatchOverviewRequest,
	call: HandlerContext,
): AsyncGenerator<WatchOverviewResponse, void, undefined> {
	const { ended, mayHold } = await admit(call);
	const intervalMs = checkedIntervalMs(interval);
	using ends = linkedSignal(call.signal, ...(ended === undefined ? [] : [ended]));
	try {
		for (;;) {
			const overview = await unlessAborted(overviews.take(call, thisServerOnly), ends.signal);
			yield create(WatchOverviewResponseSchema, { overview: withVisibleLeases(overview, mayHold) });
			await sleep(clock, untilNextMs(clock.monotonic(), intervalMs), ends.signal);
			// The next overview is the newest one when the client is ready for it.
			await unlessAborted(Promise.resolve(whenTaken(call)), ends.signal);
		}
	} catch (error) {
		if (ended?.aborted && !call.signal.aborted) {
			throw new ConnectError(
				"the token has expired or its rights have changed: watch again",
				Code.Unauthenticated,
			);
		}
		throw error;
	}
}

/**
 * The time until the next multiple of the interval on the clock, so that streams of the same interval share overviews; the
 * next but one if that is near.
 */
function untilNextMs(nowMs: number, intervalMs: number): number {
	const next = Math.ceil((nowMs + intervalMs / 2) / intervalMs) * intervalMs;
	return next - nowMs;
}

function checkedIntervalMs(interval: Duration | undefined): number {
	if (interval === undefined) {
		return intervalsMs.default;
	}
	const ms = durationMs(interval);
	if (!(ms >= intervalsMs.least && ms <= intervalsMs.most)) {
		throw new ConnectError(
			`interval must be from ${intervalsMs.least / 1_000} s to ${intervalsMs.most / 1_000} s`,
			Code.InvalidArgument,
		);
	}
	return ms;
}
