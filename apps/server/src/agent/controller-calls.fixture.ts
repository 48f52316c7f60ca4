import type { Interceptor, StreamResponse } from "@connectrpc/connect";
import { ResourceService, type WatchEvent, type WatchListRequest } from "@plinth/proto";
import { nameOf, type OpenedWatch } from "./stalled-service.fixture.ts";

/** The calls of controllers, as the controllers see them. */
export class ControllerCalls {
	/** All that were ever opened. */
	readonly watches: OpenedWatch[] = [];
	/** The calls that have no response, but for streams. */
	pending = 0;
	/** Calls, but for streams, begin once this has resolved. */
	paused: Promise<void> = Promise.resolve();

	/** The open watches of a type. */
	open(type: string): readonly OpenedWatch[] {
		return this.watches.filter((watch) => watch.type === type && !watch.ended);
	}

	readonly interceptor: Interceptor = (next) => async (request) => {
		if (!request.stream) {
			this.pending += 1;
			try {
				await this.paused;
				return await next(request);
			} finally {
				this.pending -= 1;
			}
		}
		if (request.method !== ResourceService.method.watchList) {
			return next(request);
		}
		const messages = await Array.fromAsync(request.message as AsyncIterable<WatchListRequest>);
		const watch = this.#note(messages[0], request.header);
		const end = () => {
			watch.ended = true;
		};
		request.signal.addEventListener("abort", end, { once: true });
		try {
			const response = await next({ ...request, message: iterate(messages) } as typeof request);
			const events = (response as StreamResponse).message as AsyncIterable<WatchEvent>;
			return { ...response, message: follow(watch, events, end) } as typeof response;
		} catch (failure) {
			end();
			throw failure;
		}
	};

	#note(request: WatchListRequest | undefined, header: Headers): OpenedWatch {
		if (request?.type === undefined) {
			throw new Error("a controller watches no type");
		}
		const { type, afterVersion } = request;
		const watch: OpenedWatch = {
			type: nameOf(type),
			afterVersion,
			consistent: header.get("x-plinth-consistency-mode") === "consistent",
			snapshotVersion: undefined,
			ended: false,
			received: BigInt(afterVersion || 0),
			isInSnapshot: false,
		};
		this.watches.push(watch);
		return watch;
	}
}

async function* follow(
	watch: OpenedWatch,
	events: AsyncIterable<WatchEvent>,
	end: () => void,
): AsyncGenerator<WatchEvent> {
	try {
		for await (const event of events) {
			if (event.event.case === "endOfSnapshot") {
				watch.snapshotVersion = event.version;
			}
			watch.isInSnapshot = watch.afterVersion === "" && watch.snapshotVersion === undefined;
			if (event.version !== "" && BigInt(event.version) > watch.received) {
				watch.received = BigInt(event.version);
			}
			yield event;
		}
	} finally {
		watch.isInSnapshot = false;
		end();
	}
}

async function* iterate<Message>(messages: readonly Message[]): AsyncGenerator<Message> {
	yield* messages;
}
