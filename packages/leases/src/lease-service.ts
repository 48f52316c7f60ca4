import { create } from "@bufbuild/protobuf";
import { type Duration, durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext, type ServiceImpl } from "@connectrpc/connect";
import {
	AcquireResponseSchema,
	type LeaseService,
	ReleaseResponseSchema,
	RenewResponseSchema,
	type WatchHeldRequest,
	type WatchHeldResponse,
	WatchHeldResponseSchema,
} from "@plinth/proto/gen/plinth/lease/v1/lease_service_pb.js";
import { type Clock, encodeFence, type TimedLeases, TooManyLeases } from "@plinth/runtime";
import { StorageUnavailable } from "@plinth/storage";
import { checkHolder, checkName, clientLeaseName, nameSpace } from "./lease-names.ts";

/** The rights of the caller of a request. */
export interface LeaseAccess {
	/** @throws ConnectError PermissionDenied */
	require(name: string): void;
	mayHold(name: string): boolean;
	/** Aborts when the rights have changed: streams end. */
	readonly ended?: AbortSignal | undefined;
}

/** Options of the service. */
export interface LeaseServiceOptions {
	readonly leases: TimedLeases;
	/** Why this server grants no leases now, if so. */
	readonly suspended: () => string | undefined;
	/** @throws ConnectError Unauthenticated */
	readonly accessOf: (call: HandlerContext) => Promise<LeaseAccess>;
	/** Aborts when the server stops: requests that wait then return without a lease, and are repeated elsewhere. */
	readonly stopping: AbortSignal;
	readonly clock: Clock;
}

/** How long a request may wait, in milliseconds. */
const maxWaitMs = 60_000;

/** Creates the service that grants leases to processes which are not servers. */
export function createLeaseService(options: LeaseServiceOptions): ServiceImpl<typeof LeaseService> {
	const { leases, accessOf, stopping, clock } = options;
	/** Checks a request, and whether the server can serve it. */
	async function enter(name: string, holder: string, call: HandlerContext): Promise<string> {
		checkName(name);
		checkHolder(holder);
		(await accessOf(call)).require(name);
		const why = options.suspended();
		if (why !== undefined) {
			throw new ConnectError(`this server grants no leases: ${why}`, Code.Unavailable);
		}
		return `${nameSpace}${name}`;
	}
	return {
		async acquire({ name, holder, wait }, call) {
			const waitMs = checkWait(wait);
			const stored = await enter(name, holder, call);
			using patience = new Patience(clock, waitMs, [call.signal, stopping]);
			const fence = await serving(() => leases.grant(stored, holder, patience.signal));
			return create(AcquireResponseSchema, {
				fence: fence === undefined ? "" : encodeFence(fence),
				ttl: durationFromMs(leases.ttlMs),
			});
		},
		async renew({ name, holder }, call) {
			const stored = await enter(name, holder, call);
			const fence = await serving(() => leases.renew(stored, holder));
			if (fence === undefined) {
				const message = `the lease ${name} is not held by ${holder}: it has expired, or was released`;
				throw new ConnectError(message, Code.NotFound);
			}
			return create(RenewResponseSchema, { fence: encodeFence(fence) });
		},
		async release({ name, holder }, call) {
			const stored = await enter(name, holder, call);
			await serving(() => leases.release(stored, holder));
			return create(ReleaseResponseSchema);
		},
		watchHeld: (request, call) => watchHeld(options, request, call),
	};
}

async function* watchHeld(
	{ leases, accessOf }: LeaseServiceOptions,
	{ prefix }: WatchHeldRequest,
	call: HandlerContext,
): AsyncGenerator<WatchHeldResponse, void, undefined> {
	checkName(prefix, "prefix");
	const access = await accessOf(call);
	const { ended } = access;
	const signal = ended === undefined ? call.signal : AbortSignal.any([call.signal, ended]);
	let sent: string | undefined;
	try {
		for await (const held of leases.held(`${nameSpace}${prefix}`, signal)) {
			const names = [...held].map(clientLeaseName);
			const visible = names.filter((name) => access.mayHold(name)).sort();
			const text = visible.join();
			if (text !== sent) {
				sent = text;
				yield create(WatchHeldResponseSchema, { names: visible });
			}
		}
	} catch (failure) {
		if (ended?.aborted) {
			throw new ConnectError("the rights of the token have changed", Code.Unauthenticated);
		}
		throw failure;
	}
}

/** @throws ConnectError InvalidArgument */
function checkWait(wait: Duration | undefined): number {
	const waitMs = wait === undefined ? 0 : durationMs(wait);
	if (!(waitMs >= 0 && waitMs <= maxWaitMs)) {
		const message = `wait must be from 0 to ${maxWaitMs / 1_000} seconds, got ${waitMs / 1_000}`;
		throw new ConnectError(message, Code.InvalidArgument);
	}
	return waitMs;
}

/** Maps the failures of an engine. */
async function serving<T>(run: () => Promise<T>): Promise<T> {
	try {
		return await run();
	} catch (failure) {
		if (failure instanceof TooManyLeases) {
			throw new ConnectError(failure.message, Code.ResourceExhausted);
		}
		if (failure instanceof StorageUnavailable) {
			throw new ConnectError(failure.message, Code.Unavailable);
		}
		throw failure;
	}
}

/** A signal that aborts after a time, or with one of others. */
class Patience implements Disposable {
	readonly #over = new AbortController();
	readonly #timer: { cancel(): void } | undefined;
	readonly #signals: readonly AbortSignal[];
	readonly #end = () => this.#over.abort(new Error("the wait is over"));

	constructor(clock: Clock, waitMs: number, signals: readonly AbortSignal[]) {
		this.#signals = signals;
		if (waitMs === 0 || signals.some(({ aborted }) => aborted)) {
			this.#end();
			return;
		}
		this.#timer = clock.setTimer(waitMs, this.#end);
		for (const signal of signals) {
			signal.addEventListener("abort", this.#end, { once: true });
		}
	}

	get signal(): AbortSignal {
		return this.#over.signal;
	}

	[Symbol.dispose](): void {
		this.#timer?.cancel();
		for (const signal of this.#signals) {
			signal.removeEventListener("abort", this.#end);
		}
	}
}
