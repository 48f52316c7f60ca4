import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
import { type Clock, sleep, type Timer } from "@plinth/runtime";
import type {
	WatchCreateRequestSchema,
	WatchRequestSchema,
	WatchResponse,
} from "../gen/etcdserverpb/rpc_pb.ts";
import type { Endpoint } from "./endpoint.ts";
import { etcdError, RevisionCompacted } from "./etcd-error.ts";
import { MemberLag } from "./member-lag.ts";

/** How often a watch requests its progress, and how long it waits for any response, in milliseconds. */
const probeEveryMs = 1000;
const silenceMs = 3000;

/** What to watch: a key or range, from a revision on. */
export type WatchInit = MessageInitShape<typeof WatchCreateRequestSchema>;

/** Options of a watch. */
export interface WatchOptions extends CallOptions {
	readonly signal: AbortSignal;
	/** The newest revision that the cluster is known to have. */
	known(): bigint;
}

/**
 * Follows a watch at one member while that responds, and does not lag: a stopped or unreachable etcd does not close its
 * connections.
 *
 * @throws EtcdError; RevisionCompacted; the signal's reason.
 */
export async function* watchStream(
	endpoint: Pick<Endpoint, "url" | "watch">,
	request: WatchInit,
	clock: Clock,
	{ signal, known, ...options }: WatchOptions,
): AsyncGenerator<WatchResponse, never, undefined> {
	const ended = new AbortController();
	const stop = AbortSignal.any([ended.signal, signal]);
	const lag = new MemberLag();
	let silence: Timer | undefined;
	const alive = () => {
		silence?.cancel();
		silence = clock.setTimer(silenceMs, () =>
			ended.abort(new Error(`etcd at ${endpoint.url} was silent for ${silenceMs} ms`)),
		);
	};
	try {
		alive();
		const create = { ...request, fragment: true };
		const requests = probing(create, clock, stop, () => lag.requested(known()));
		// Fragments may split a revision: the last one of each is joined with what follows. All of a response may be too much.
		let earlier: WatchResponse["events"] = [];
		for await (const response of endpoint.watch.watch(requests, { ...options, signal: stop })) {
			alive();
			if (response.compactRevision > 0n) {
				throw new RevisionCompacted();
			}
			if (response.canceled) {
				throw new ConnectError(`watch canceled: ${response.cancelReason}`, Code.Unavailable);
			}
			if (response.events.length === 0 && !response.created) {
				throwIfBehind(lag, response, endpoint.url);
			}
			if (response.fragment) {
				const events = earlier.concat(response.events);
				const last = events.at(-1)?.kv?.modRevision;
				const begin = events.findIndex(({ kv }) => kv?.modRevision === last);
				earlier = events.slice(begin);
				response.events = events.slice(0, begin);
				if (begin > 0) {
					yield response;
				}
				continue;
			}
			if (earlier.length > 0) {
				response.events = earlier.concat(response.events);
				earlier = [];
			}
			yield response;
		}
		throw new ConnectError("the watch has ended", Code.Unavailable);
	} catch (error) {
		signal.throwIfAborted();
		throw error instanceof RevisionCompacted
			? error
			: etcdError(ended.signal.aborted ? ended.signal.reason : error);
	} finally {
		silence?.cancel();
		ended.abort(new Error("the consumer ended the watch"));
	}
}

/** Checks a response to a progress request. */
function throwIfBehind(lag: MemberLag, { header }: WatchResponse, url: string): void {
	if (header === undefined) {
		return;
	}
	const missing = lag.responded(header.revision);
	if (missing !== undefined) {
		throw new ConnectError(
			`the member at ${url} lags: it is still at revision ${header.revision}, and the cluster has had revision ${missing} for seconds`,
			Code.Unavailable,
		);
	}
}

/**
 * The request of a watch, then progress requests.
 *
 * @param requested Called before each progress request.
 */
async function* probing(
	request: WatchInit,
	clock: Clock,
	signal: AbortSignal,
	requested: () => void,
): AsyncGenerator<MessageInitShape<typeof WatchRequestSchema>, void, undefined> {
	yield { requestUnion: { case: "createRequest", value: request } };
	for (;;) {
		await sleep(clock, probeEveryMs, signal);
		requested();
		yield { requestUnion: { case: "progressRequest", value: {} } };
	}
}
