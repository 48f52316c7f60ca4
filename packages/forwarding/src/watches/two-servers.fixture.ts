import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { encodeEnvelope } from "@connectrpc/connect/protocol";
import {
	WatchEventSchema,
	type WatchListRequest,
	WatchListRequestSchema,
	WatchSetEventSchema,
	WatchSetRequestSchema,
} from "@plinth/proto";
import type { Random } from "@plinth/runtime";
import type { WatchMethod } from "./scanned-message.ts";

/** An event of a watch, as a test compares it. */
export interface ModelEvent {
	readonly kind: "upsert" | "delete" | "endOfSnapshot" | "bookmark" | "end";
	readonly name?: string;
	/** The version of the resource. */
	readonly of?: string;
	readonly version?: string;
}

/** One commit. */
export interface Revision {
	readonly revision: number;
	readonly changes: readonly {
		readonly kind: "upsert" | "delete";
		readonly name: string;
		readonly of: string;
	}[];
}

/** What is stored, and all commits: what every server applies, sooner or later. */
export class History {
	readonly revisions: Revision[] = [];
	readonly #stored = new Map<string, string>();
	readonly #random: Random;

	constructor(random: Random) {
		this.#random = random;
	}

	get last(): number {
		return this.revisions.at(-1)?.revision ?? 1_000;
	}

	commit(): void {
		const revision = this.last + 1 + below(this.#random, 3);
		const count = 1 + below(this.#random, 5);
		const names = new Set(Array.from({ length: count }, () => `n${below(this.#random, 8)}`));
		const changes = [...names].map((name) => {
			const stored = this.#stored.get(name);
			if (stored !== undefined && this.#random.next() < 0.4) {
				this.#stored.delete(name);
				return { kind: "delete" as const, name, of: stored };
			}
			this.#stored.set(name, String(revision));
			return { kind: "upsert" as const, name, of: String(revision) };
		});
		this.revisions.push({ revision, changes });
	}

	/** The events after a version, up to another one, of the names that a watch may see. */
	after(version: number, upTo: number, sees: (name: string) => boolean): readonly ModelEvent[] {
		return this.revisions
			.filter(({ revision }) => revision > version && revision <= upTo)
			.flatMap(({ revision, changes }) => {
				const seen = changes.filter(({ name }) => sees(name));
				return seen.map((change, index) =>
					index === seen.length - 1 ? { ...change, version: String(revision) } : change,
				);
			});
	}

	/** The snapshot at a version. */
	snapshot(at: number, sees: (name: string) => boolean): readonly ModelEvent[] {
		const stored = new Map<string, string>();
		for (const { revision, changes } of this.revisions) {
			if (revision <= at) {
				for (const { kind, name, of } of changes) {
					if (kind === "delete") {
						stored.delete(name);
					} else {
						stored.set(name, of);
					}
				}
			}
		}
		const present = [...stored].filter(([name]) => sees(name)).sort();
		return [
			...present.map(([name, of]) => ({ kind: "upsert" as const, name, of })),
			{ kind: "endOfSnapshot", version: String(at) },
		];
	}
}

/** What a watch of a set may see, by its id. */
export const views: ReadonlyMap<string, (name: string) => boolean> = new Map<
	string,
	(name: string) => boolean
>([
	["", () => true],
	["all", () => true],
	['"\u00e9\\', (name) => name < "n4"],
	["few", (name) => name === "n7"],
]);

/** A watch on a server. */
interface ModelWatch {
	readonly id: string;
	readonly queue: ModelEvent[];
	/** Whether the server has ended it. */
	hasEnded?: boolean;
	/** All revisions up to here are in the queue, or were sent. */
	position: number;
}

/** A server that applies the history with a lag, and sends the events of one stream as bytes. */
export class ModelServer {
	readonly #history: History;
	readonly #random: Random;
	#applied = 0;

	constructor(history: History, random: Random) {
		this.#history = history;
		this.#random = random;
	}

	/** Applies some revisions, or all. */
	apply(count = Number.POSITIVE_INFINITY): void {
		const next = this.#history.revisions.filter(({ revision }) => revision > this.#applied);
		this.#applied = next.at(Math.min(count, next.length) - 1)?.revision ?? this.#applied;
	}

	/** Opens the watches of a request. */
	open(method: WatchMethod, format: "binary" | "json", body: Uint8Array): ModelStream {
		const requests = decodeRequests(method, format, body.subarray(5));
		const watches = requests.map(({ id, after }) => {
			const sees = views.get(id) ?? (() => false);
			if (after !== "") {
				// A server catches up before it resumes.
				this.#applied = Math.max(this.#applied, Number(after));
				return { id, queue: [], position: Number(after) };
			}
			return {
				id,
				queue: [...this.#history.snapshot(this.#applied, sees)],
				position: this.#applied,
			};
		});
		return new ModelStream(
			this.#history,
			() => this.#applied,
			watches,
			this.#random,
			method === "WatchSet",
			(id, event) => encodeEnvelope(0, encodeEvent(method, format, id, event)),
		);
	}
}

/** The stream of a call. */
export class ModelStream {
	readonly #history: History;
	readonly #applied: () => number;
	readonly #watches: readonly ModelWatch[];
	readonly #random: Random;
	readonly #refuses: boolean;
	readonly #encode: (id: string, event: ModelEvent) => Uint8Array;
	#bytes: Buffer = Buffer.alloc(0);

	constructor(
		history: History,
		applied: () => number,
		watches: readonly ModelWatch[],
		random: Random,
		refuses: boolean,
		encode: (id: string, event: ModelEvent) => Uint8Array,
	) {
		this.#history = history;
		this.#applied = applied;
		this.#watches = watches;
		this.#random = random;
		this.#refuses = refuses;
		this.#encode = encode;
	}

	/** The next bytes, up to `most`: often ends in the middle of a message. */
	read(most: number): Uint8Array {
		while (this.#bytes.length < most && this.#encodeNext()) {
			// More follows.
		}
		const chunk = this.#bytes.subarray(0, most);
		this.#bytes = this.#bytes.subarray(chunk.length);
		return chunk;
	}

	#encodeNext(): boolean {
		const open = this.#watches.filter(({ hasEnded }) => hasEnded !== true);
		const refused = open[below(this.#random, open.length)];
		if (refused !== undefined && this.#refuses && this.#random.next() < 0.05) {
			refused.hasEnded = true;
			this.#append(refused.id, ended);
			return true;
		}
		for (const watch of open) {
			const sees = views.get(watch.id) ?? (() => false);
			const applied = this.#applied();
			watch.queue.push(...this.#history.after(watch.position, applied, sees));
			watch.position = Math.max(watch.position, applied);
		}
		const ready = open.filter(({ queue }) => queue.length > 0);
		const watch = ready[below(this.#random, ready.length)];
		if (watch !== undefined) {
			const event = watch.queue.shift();
			if (event !== undefined) {
				this.#append(watch.id, event);
				return true;
			}
		}
		const idle = open[below(this.#random, open.length)];
		if (idle !== undefined && this.#random.next() < 0.2) {
			this.#append(idle.id, { kind: "bookmark", version: String(idle.position) });
			return true;
		}
		return false;
	}

	#append(id: string, event: ModelEvent): void {
		this.#bytes = Buffer.concat([this.#bytes, this.#encode(id, event)]);
	}
}

/** The request of a watch that begins with a snapshot, or resumes. */
export function encodeRequest(
	method: WatchMethod,
	format: "binary" | "json",
	after: string,
	bookmarks: boolean,
): Uint8Array {
	const request = { namePrefix: "n", afterVersion: after, bookmarks };
	const watches = [...views.keys()].filter((id) => id !== "").map((id) => ({ id, request }));
	const value = method === "WatchList" ? request : { watches };
	if (format === "json") {
		return encodeEnvelope(0, Buffer.from(JSON.stringify(value)));
	}
	return encodeEnvelope(
		0,
		method === "WatchList"
			? toBinary(WatchListRequestSchema, create(WatchListRequestSchema, request))
			: toBinary(WatchSetRequestSchema, create(WatchSetRequestSchema, { watches })),
	);
}

function decodeRequests(method: WatchMethod, format: "binary" | "json", message: Uint8Array) {
	interface Set {
		readonly watches: readonly {
			readonly id: string;
			readonly request?: Partial<WatchListRequest>;
		}[];
	}
	const json = format === "json" ? JSON.parse(Buffer.from(message).toString()) : undefined;
	if (method === "WatchList") {
		const { afterVersion } = json ?? fromBinary(WatchListRequestSchema, message);
		return [{ id: "", after: String(afterVersion) }];
	}
	const { watches }: Set = json ?? fromBinary(WatchSetRequestSchema, message);
	return watches.map(({ id, request }) => ({ id, after: request?.afterVersion ?? "" }));
}

/** Text that looks like the members of JSON that are read, or like the end of its string. */
const trickyText = '"version":"1"}\\"}],{"upsert":{"resource":{"id":{"name":"x"';

function encodeEvent(
	method: WatchMethod,
	format: "binary" | "json",
	watchId: string,
	event: ModelEvent,
): Uint8Array {
	if (event.kind === "end") {
		const value = { code: 14, message: "the storage can't be reached" };
		const end = create(WatchSetEventSchema, { watchId, content: { case: "end", value } });
		return format === "json"
			? Buffer.from(JSON.stringify({ end: value, watchId }))
			: toBinary(WatchSetEventSchema, end);
	}
	if (format === "json") {
		const value = jsonOf(event);
		return Buffer.from(JSON.stringify(method === "WatchList" ? value : { event: value, watchId }));
	}
	const message = messageOf(event);
	return method === "WatchList"
		? toBinary(WatchEventSchema, message)
		: toBinary(
				WatchSetEventSchema,
				create(WatchSetEventSchema, { watchId, content: { case: "event", value: message } }),
			);
}

function jsonOf({ kind, name, of, version }: ModelEvent): object {
	const resource = {
		data: { "@type": "x", version: trickyText, id: { name: trickyText }, list: [[{}], trickyText] },
		id: { uid: "u", tenancy: { namespace: "ns", partition: "p" }, name },
		metadata: { name: trickyText },
		version: of,
	};
	return {
		...(version !== undefined && { version }),
		[kind]: name === undefined ? {} : { resource },
	};
}

function messageOf({ kind, name = "", of = "", version = "" }: ModelEvent) {
	const resource = {
		id: { uid: "u", name, tenancy: { partition: "p", namespace: "ns" } },
		version: of,
		metadata: { name: trickyText },
		data: { typeUrl: "x", value: Buffer.from(trickyText) },
	};
	switch (kind) {
		case "upsert":
		case "delete":
			return create(WatchEventSchema, { version, event: { case: kind, value: { resource } } });
		case "endOfSnapshot":
			return create(WatchEventSchema, { version, event: { case: kind, value: {} } });
		default:
			return create(WatchEventSchema, { version, event: { case: "bookmark", value: {} } });
	}
}

/** The events that a client has received, by the ids of its watches. */
export function decodeEvents(
	method: WatchMethod,
	format: "binary" | "json",
	bytes: Uint8Array,
): ReadonlyMap<string, readonly ModelEvent[]> {
	const events = new Map<string, ModelEvent[]>();
	let rest = bytes;
	while (rest.length > 0) {
		const size = 5 + new DataView(rest.buffer, rest.byteOffset).getUint32(1);
		const message = rest.subarray(5, size);
		rest = rest.subarray(size);
		const { id, event } = decodeEvent(method, format, message);
		events.set(id, [...(events.get(id) ?? []), event]);
	}
	return events;
}

// biome-ignore lint/suspicious/noExplicitAny: the shape of JSON is what the test is about.
type Json = any;

function decodeEvent(method: WatchMethod, format: "binary" | "json", message: Uint8Array) {
	if (format === "json") {
		const json: Json = JSON.parse(Buffer.from(message).toString());
		if (method === "WatchList") {
			return { id: "", event: eventOfJson(json) };
		}
		return { id: String(json.watchId), event: json.end ? ended : eventOfJson(json.event) };
	}
	if (method === "WatchList") {
		return { id: "", event: eventOf(fromBinary(WatchEventSchema, message)) };
	}
	const { watchId, content } = fromBinary(WatchSetEventSchema, message);
	return { id: watchId, event: content.case === "event" ? eventOf(content.value) : ended };
}

const ended: ModelEvent = { kind: "end" };

function eventOfJson(json: Json): ModelEvent {
	const kind = (["upsert", "delete", "endOfSnapshot", "bookmark"] as const).find(
		(each) => json[each],
	);
	const { resource } = json[kind ?? ""] ?? {};
	return {
		kind: kind ?? "bookmark",
		...(resource && { name: resource.id.name, of: resource.version }),
		...(json.version && { version: json.version }),
	};
}

function eventOf({ event, version }: ReturnType<typeof messageOf>): ModelEvent {
	const isChange = event.case === "upsert" || event.case === "delete";
	const resource = isChange ? event.value.resource : undefined;
	return {
		kind: event.case ?? "bookmark",
		...(resource && { name: resource.id?.name ?? "", of: resource.version }),
		...(version && { version }),
	};
}

/** A number from 0, below `limit`. */
export function below(random: Random, limit: number): number {
	return Math.floor(random.next() * limit);
}
