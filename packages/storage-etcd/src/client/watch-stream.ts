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

/** How often a watch requests its progress, and how long it waits for any response, in milliseconds. */
const probeEveryMs = 1000;
const silenceMs = 3000;

/** What to watch: a key or range, from a revision on. */
export type WatchInit = MessageInitShape<typeof WatchCreateRequestSchema>;

/**
 * Follows a watch at one member while that responds: a stopped or unreachable etcd does not close its
 * connections.
 *
 * @throws EtcdError; RevisionCompacted; the signal's reason.
 */
export async function* watchStream(
	endpoint: Endpoint,
	request: WatchInit,
	clock: Clock,
	{ signal, ...options }: CallOptions & { readonly signal: AbortSignal },
): AsyncGenerator<WatchResponse, never, undefined> {
	const ended = new AbortController();
	const stop = AbortSignal.any([ended.signal, signal]);
	let silence: Timer | undefined;
	const alive = () => {
		silence?.cancel();
		silence = clock.setTimer(silenceMs, () =>
			ended.abort(new Error(`etcd at ${endpoint.url} was silent for ${silenceMs} ms`)),
		);
	};
	try {
		alive();
		const requests = probing({ ...request, fragment: true }, clock, stop);
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

/** The request of a watch, then progress requests. */
async function* probing(
	request: WatchInit,
	clock: Clock,
	signal: AbortSignal,
): AsyncGenerator<MessageInitShape<typeof WatchRequestSchema>, void, undefined> {
	yield { requestUnion: { case: "createRequest", value: request } };
	for (;;) {
		await sleep(clock, probeEveryMs, signal);
		yield { requestUnion: { case: "progressRequest", value: {} } };
	}
}
