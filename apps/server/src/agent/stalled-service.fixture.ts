import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type SeenWatch, Stalls } from "@plinth/controller/suite";
import {
	type IDSchema,
	type ResourceService,
	type WatchEvent,
	WatchEventSchema,
	type WatchListRequest,
	type WriteResponseSchema,
	type WriteStatusResponseSchema,
} from "@plinth/proto";
import type { TypeLike } from "@plinth/resource";

type Service = ServiceImpl<typeof ResourceService>;

/** A watch that a controller has opened. */
export interface OpenedWatch extends SeenWatch {
	/** The newest version that the controller has received. */
	received: bigint;
	/** Whether a part of a snapshot has arrived, but not its end. */
	isInSnapshot: boolean;
}

/** What a server is doing. */
export interface ServerWork {
	/** Its calls that wait at a gate, but for watches. */
	held: number;
	/** Its open watches. */
	watches: number;
}

/** The name of a type in stalls: `demo.v1.Artist`. */
export function nameOf({ group, groupVersion, kind }: Partial<TypeLike>): string {
	return `${group}.${groupVersion}.${kind}`;
}

/**
 * Serves a resource service, the same one at several servers, so that its calls can be made to stall, fail or break. Nothing
 * else changes: what is stored, and what watches send, is up to the service.
 */
export class StalledService {
	readonly stalls = new Stalls();
	readonly #service: Service;
	readonly #received: (request: WatchListRequest) => WatchListRequest;
	readonly #versions = new Map<string, bigint>();
	readonly #open = new Map<string, number>();
	/** How many events of an unknown kind were sent to the watches of a type. */
	readonly #unknown = new Map<string, number>();
	#wake = Promise.withResolvers<void>();

	/** @param received - changes the requests of watches before anything is done for them. */
	constructor(
		service: Service,
		received: (request: WatchListRequest) => WatchListRequest = (request) => request,
	) {
		this.#service = service;
		this.#received = received;
	}

	/** The version of the newest commit to a type; 0 if there was none. */
	newestVersion(type: string): bigint {
		return this.#versions.get(type) ?? 0n;
	}

	/** How many watches of a type are open at all servers. */
	openWatches(type: string): number {
		return this.#open.get(type) ?? 0;
	}

	/** Whether a gate holds up what the watch would receive. */
	isStalled({ type, afterVersion, snapshotVersion }: SeenWatch): boolean {
		const isLive = afterVersion !== "" || snapshotVersion !== undefined;
		return this.stalls.isShut(`${isLive ? "live" : "snapshot"} ${type}`);
	}

	/** Whether a watch has received its snapshot, and all that was committed. */
	isReceived({ type, afterVersion, snapshotVersion, received }: OpenedWatch): boolean {
		const isLive = afterVersion !== "" || snapshotVersion !== undefined;
		return isLive && received >= this.newestVersion(type);
	}

	/** Ends the open watches of a type with an error. */
	breakWatches(type: string): void {
		this.stalls.breakWatches(type);
		this.#wakeAll();
	}

	/** Sends an event of an unknown kind to the open watches of a type. */
	sendUnknown(type: string): void {
		this.#unknown.set(type, (this.#unknown.get(type) ?? 0) + 1);
		this.#wakeAll();
	}

	/** Notes a commit that did not come through a server. */
	noteCommit(id: MessageInitShape<typeof IDSchema> | undefined, version = ""): void {
		if (id?.type !== undefined && version !== "") {
			const type = nameOf(id.type);
			const newest = this.newestVersion(type);
			this.#versions.set(type, newest > BigInt(version) ? newest : BigInt(version));
		}
	}

	/** The service, as one of the servers serves it. */
	at(server: ServerWork): Service {
		const service = this.#service;
		/** Of the resource in a response. */
		const noteStored = ({
			resource,
		}: MessageInitShape<typeof WriteResponseSchema | typeof WriteStatusResponseSchema>) =>
			this.noteCommit(resource?.id, resource?.version);
		const call = async <Response>(
			method: string,
			{ signal }: HandlerContext,
			run: () => Promise<Response>,
			onDone: (response: Response) => void,
		): Promise<Response> => {
			await this.#holding(server, `call ${method}`, () =>
				this.stalls.pass(`call ${method}`, signal),
			);
			const response = await run();
			onDone(response);
			await this.#holding(server, `ack ${method}`, () => this.stalls.gate(`ack ${method}`, signal));
			return response;
		};
		return {
			...service,
			write: (request, context) =>
				call("Write", context, async () => service.write(request, context), noteStored),
			writeStatus: (request, context) =>
				call("WriteStatus", context, async () => service.writeStatus(request, context), noteStored),
			delete: (request, context) =>
				call(
					"Delete",
					context,
					async () => service.delete(request, context),
					({ version }) => this.noteCommit(request.id, version),
				),
			watchList: (request, context) => this.#watch(server, this.#received(request), context),
		};
	}

	async *#watch(
		server: ServerWork,
		request: WatchListRequest,
		context: HandlerContext,
	): AsyncGenerator<WatchEvent> {
		const type = request.type === undefined ? "" : nameOf(request.type);
		const { signal } = context;
		const breaks = this.stalls.breaks(type);
		let unknown = this.#unknown.get(type) ?? 0;
		let isLive = request.afterVersion !== "";
		server.watches += 1;
		this.#open.set(type, this.openWatches(type) + 1);
		let events: AsyncIterator<WatchEvent> | undefined;
		try {
			await this.stalls.pass(`${isLive ? "resume" : "snapshot"} ${type}`, signal);
			events = this.#events(request, context);
			let next = events.next();
			for (;;) {
				const woken = this.#wake.promise.then(() => undefined);
				const result = await Promise.race([next, woken]);
				if (isLive) {
					await this.stalls.gate(`live ${type}`, signal);
					this.stalls.throwIfBroken(type, breaks);
					for (; unknown < (this.#unknown.get(type) ?? 0); unknown++) {
						yield create(WatchEventSchema);
					}
				}
				if (result?.done) {
					return;
				}
				if (result !== undefined) {
					isLive ||= result.value.event.case === "endOfSnapshot";
					yield result.value;
					next = events.next();
				}
			}
		} finally {
			server.watches -= 1;
			this.#open.set(type, this.openWatches(type) - 1);
			await events?.return?.();
		}
	}

	#events(request: WatchListRequest, context: HandlerContext): AsyncIterator<WatchEvent> {
		const events = this.#service.watchList(request, context);
		// The service sends whole messages.
		return (events as AsyncIterable<WatchEvent>)[Symbol.asyncIterator]();
	}

	async #holding(server: ServerWork, what: string, wait: () => Promise<void>): Promise<void> {
		const held = Number(this.stalls.isShut(what));
		server.held += held;
		try {
			await wait();
		} finally {
			server.held -= held;
		}
	}

	#wakeAll(): void {
		this.#wake.resolve();
		this.#wake = Promise.withResolvers();
	}
}
