import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import {
	create,
	type DescMessage,
	type MessageShape,
	toBinary,
	toJsonString,
} from "@bufbuild/protobuf";
import { ResourceService, WatchListRequestSchema, WatchSetRequestSchema } from "@plinth/proto";
import { typeOf } from "@plinth/resource";
import { Artist } from "../testdata/music.ts";

/** Options of a group. */
export interface WatcherOptions {
	/** The number of streams. */
	readonly count: number;
	readonly contentType: string;
	readonly headers: Readonly<Record<string, string>>;
	/** How many watches each stream has, as a set. One by default, without a set. */
	readonly watchesPerStream?: number;
	/** Of the names that are watched; all names if absent. */
	readonly namePrefix?: string;
}

const watchersPerConnection = 1_000;
const headBytes = 5;

/** Watches of all artists, on as few connections as possible. They count envelopes and decode nothing. */
export class WatcherGroup {
	readonly #sessions: ClientHttp2Session[] = [];
	readonly #watchers: Watcher[] = [];
	readonly #watchesPerStream: number;
	#missing = 0;
	#complete = () => {};

	constructor({ watchesPerStream = 1 }: Pick<WatcherOptions, "watchesPerStream">) {
		this.#watchesPerStream = watchesPerStream;
	}

	/** Opens the watches, and resolves when each has received its snapshot. */
	static async open(url: string, options: WatcherOptions): Promise<WatcherGroup> {
		const group = new WatcherGroup(options);
		const body = bodyOf(options);
		for (let opened = 0; opened < options.count; opened += watchersPerConnection) {
			const session = connect(url);
			await once(session, "connect");
			group.#sessions.push(session);
			const count = Math.min(watchersPerConnection, options.count - opened);
			await Promise.all(Array.from({ length: count }, () => group.#watch(session, options, body)));
		}
		return group;
	}

	/** Resolves when each watcher has received that many more events. */
	receive(events: number): Promise<void> {
		this.#missing = events * this.#watchers.length * this.#watchesPerStream;
		return new Promise((resolve) => {
			this.#complete = resolve;
		});
	}

	close(): void {
		for (const session of this.#sessions) {
			session.destroy();
		}
	}

	/** Resolves when the snapshot has been received. */
	#watch(session: ClientHttp2Session, options: WatcherOptions, body: Buffer): Promise<void> {
		const { contentType, headers } = options;
		const stream = session.request({
			":method": "POST",
			":path": `/${ResourceService.typeName}/${isSet(options) ? "WatchSet" : "WatchList"}`,
			"content-type": contentType,
			te: "trailers",
			...headers,
		});
		stream.end(body);
		return new Promise((resolve, reject) => {
			let snapshots = this.#watchesPerStream;
			const watcher = new Watcher((size) => {
				if (snapshots === 0) {
					this.#missing -= 1;
					if (this.#missing === 0) {
						this.#complete();
					}
				} else if (size < endOfSnapshotBytes) {
					snapshots -= 1;
					if (snapshots === 0) {
						resolve();
					}
				}
			});
			this.#watchers.push(watcher);
			stream.on("data", (chunk: Buffer) => watcher.add(chunk));
			stream.on("error", reject);
			stream.on("close", () => reject(new Error("a watch has ended")));
		});
	}
}

/** No upsert of an artist is as small as the end of a snapshot. */
const endOfSnapshotBytes = 90;

/** Finds the envelopes of one stream. */
class Watcher {
	readonly #found: (bytes: number) => void;
	#rest: Buffer | undefined;

	constructor(found: (bytes: number) => void) {
		this.#found = found;
	}

	add(chunk: Buffer): void {
		const bytes = this.#rest === undefined ? chunk : Buffer.concat([this.#rest, chunk]);
		let offset = 0;
		while (bytes.length - offset >= headBytes) {
			const size = bytes.readUInt32BE(offset + 1);
			if (bytes.length - offset < headBytes + size) {
				break;
			}
			offset += headBytes + size;
			this.#found(size);
		}
		this.#rest = offset === bytes.length ? undefined : Buffer.from(bytes.subarray(offset));
	}
}

function isSet({ watchesPerStream = 1 }: WatcherOptions): boolean {
	return watchesPerStream > 1;
}

/** The request of each stream. */
function bodyOf(options: WatcherOptions): Buffer {
	const { contentType, namePrefix = "", watchesPerStream = 1 } = options;
	const encode = <Schema extends DescMessage>(schema: Schema, message: MessageShape<Schema>) =>
		enveloped(
			contentType.includes("json")
				? Buffer.from(toJsonString(schema, message))
				: toBinary(schema, message),
		);
	const request = create(WatchListRequestSchema, { type: typeOf(Artist.type), namePrefix });
	if (!isSet(options)) {
		return encode(WatchListRequestSchema, request);
	}
	const watches = Array.from({ length: watchesPerStream }, (_, id) => ({ id: `${id}`, request }));
	return encode(WatchSetRequestSchema, create(WatchSetRequestSchema, { watches }));
}

function enveloped(message: Uint8Array): Buffer {
	const head = Buffer.alloc(headBytes);
	head.writeUInt32BE(message.length, 1);
	return Buffer.concat([head, message]);
}
