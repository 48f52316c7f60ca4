import type { CallOptions } from "@connectrpc/connect";
import type { ResourceClient } from "@plinth/controller";
import type { WatchEvent } from "@plinth/proto";
import type { TypeLike } from "@plinth/resource";
import type { ClientFaults, UnaryMethod } from "./client-faults.ts";
import { FaultyWatch } from "./faulty-watch.ts";

/** A type in a request. */
type GivenType = Partial<TypeLike> | undefined;

/** A client with injected faults in its calls and watches. */
export function faultyClient(client: ResourceClient, faults: ClientFaults): ResourceClient {
	const call = async <Response>(
		method: UnaryMethod,
		given: GivenType,
		send: () => Promise<Response>,
	): Promise<Response> => {
		const type = typeLike(given);
		if (!faults.isClear()) {
			await faults.pass({ point: "request", method, type });
		}
		const response = await send();
		if (!faults.isClear()) {
			await faults.pass({ point: "response", method, type });
		}
		return response;
	};
	return {
		read: (request, options) => call("read", request.id?.type, () => client.read(request, options)),
		list: (request, options) => call("list", request.type, () => client.list(request, options)),
		listByOwner: (request, options) =>
			call("listByOwner", request.owner?.type, () => client.listByOwner(request, options)),
		mutateAndValidate: (request, options) =>
			call("mutateAndValidate", request.resource?.id?.type, () =>
				client.mutateAndValidate(request, options),
			),
		write: (request, options) =>
			call("write", request.resource?.id?.type, () => client.write(request, options)),
		writeStatus: (request, options) =>
			call("writeStatus", request.id?.type, () => client.writeStatus(request, options)),
		delete: (request, options) =>
			call("delete", request.id?.type, () => client.delete(request, options)),
		watchList: (request, options) =>
			watched(
				faults,
				typeLike(request.type),
				Boolean(request.afterVersion),
				(signal) => client.watchList(request, { ...options, signal }),
				options,
			),
		// Controllers watch no sets.
		watchSet: (request, options) => client.watchSet(request, options),
	};
}

/** A watch that can be stalled, be broken, and deliver events in the wrong order. */
async function* watched(
	faults: ClientFaults,
	type: TypeLike | undefined,
	resumes: boolean,
	open: (signal: AbortSignal) => AsyncIterable<WatchEvent>,
	options: CallOptions | undefined,
): AsyncGenerator<WatchEvent> {
	const place = { method: "watchList", type } as const;
	const ended = new AbortController();
	const { signal } = ended;
	const given = options?.signal;
	const onAbort = () => ended.abort(given?.reason);
	if (given?.aborted) {
		onAbort();
	}
	given?.addEventListener("abort", onAbort, { once: true });
	const watch = new FaultyWatch(type, signal);
	faults.opened(watch);
	try {
		if (!faults.isClear()) {
			await watch.unlessAborted(faults.pass({ ...place, point: "open" }));
			if (resumes) {
				await watch.unlessAborted(faults.pass({ ...place, point: "resume" }));
			}
		}
		for await (const event of watch.events(open(signal))) {
			if (!faults.isClear()) {
				await watch.unlessAborted(faults.pass({ ...place, point: "event" }));
			}
			watch.throwIfBroken();
			yield event;
		}
	} finally {
		faults.ended(watch);
		given?.removeEventListener("abort", onAbort);
		ended.abort();
	}
}

function typeLike(type: GivenType): TypeLike | undefined {
	return (
		type && {
			group: type.group ?? "",
			groupVersion: type.groupVersion ?? "",
			kind: type.kind ?? "",
		}
	);
}
