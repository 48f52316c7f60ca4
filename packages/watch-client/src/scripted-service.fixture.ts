import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { CallOptions } from "@connectrpc/connect";
import { type WatchSetEvent, WatchSetEventSchema, type WatchSetRequestSchema } from "@plinth/proto";

/** A stream that a client has opened. The test decides what it sends. */
export class ScriptedStream {
	readonly request: MessageInitShape<typeof WatchSetRequestSchema>;
	readonly options: CallOptions;
	readonly #queue: (WatchSetEvent | { readonly failure: unknown } | "end")[] = [];
	#wake = () => {};

	constructor(request: MessageInitShape<typeof WatchSetRequestSchema>, options: CallOptions) {
		this.request = request;
		this.options = options;
		options.signal?.addEventListener("abort", () => this.fail(options.signal?.reason));
	}

	/** The versions after which the watches resume, by their ids. */
	get positions(): Readonly<Record<string, string | undefined>> {
		const { watches = [] } = this.request;
		return Object.fromEntries(watches.map(({ id = "", request }) => [id, request?.afterVersion]));
	}

	get isOpen(): boolean {
		return this.options.signal?.aborted === false;
	}

	/** An upsert of a resource with that name. Without a version, it is not the last event of its commit. */
	upsert(watchId: string, name: string, version = ""): void {
		const event = { case: "upsert", value: { resource: { id: { name } } } } as const;
		this.#send({ watchId, content: { case: "event", value: { event, version } } });
	}

	endOfSnapshot(watchId: string, version: string): void {
		const event = { case: "endOfSnapshot", value: {} } as const;
		this.#send({ watchId, content: { case: "event", value: { event, version } } });
	}

	bookmark(watchId: string, version: string): void {
		const event = { case: "bookmark", value: {} } as const;
		this.#send({ watchId, content: { case: "event", value: { event, version } } });
	}

	/** An event of a kind that the client does not know. */
	unknown(watchId: string, version: string): void {
		this.#send({ watchId, content: { case: "event", value: { version } } });
	}

	endWatch(watchId: string, code: number, message: string): void {
		this.#send({ watchId, content: { case: "end", value: { code, message } } });
	}

	fail(failure: unknown): void {
		this.#queue.push({ failure });
		this.#wake();
	}

	end(): void {
		this.#queue.push("end");
		this.#wake();
	}

	async *[Symbol.asyncIterator](): AsyncGenerator<WatchSetEvent> {
		for (;;) {
			const next = this.#queue.shift();
			if (next === undefined) {
				await new Promise<void>((resolve) => {
					this.#wake = resolve;
				});
			} else if (next === "end") {
				return;
			} else if ("failure" in next) {
				throw next.failure;
			} else {
				yield next;
			}
		}
	}

	#send(message: MessageInitShape<typeof WatchSetEventSchema>): void {
		this.#queue.push(create(WatchSetEventSchema, message));
		this.#wake();
	}
}

/** A server whose streams the test scripts. */
export class ScriptedService {
	readonly streams: ScriptedStream[] = [];

	readonly watchSet = (
		request: MessageInitShape<typeof WatchSetRequestSchema>,
		options: CallOptions = {},
	): ScriptedStream => {
		const stream = new ScriptedStream(request, options);
		this.streams.push(stream);
		return stream;
	};

	/** The stream that was opened last. */
	get last(): ScriptedStream {
		const last = this.streams.at(-1);
		if (last === undefined) {
			throw new Error("no stream was opened");
		}
		return last;
	}
}
