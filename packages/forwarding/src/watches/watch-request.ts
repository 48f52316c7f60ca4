import { checkUniqueMembers } from "../messages/json-members.ts";
import {
	encodeField,
	encodeNumberField,
	MalformedMessage,
	visitFields,
} from "../messages/protobuf-fields.ts";
import type { WatchMethod } from "./scanned-message.ts";

/** How a watch of a request is requested again: after a version, without one as at first, or not at all. */
export type Resumption = { readonly after: string } | "as-requested" | "omitted";

/** The request message of WatchList or WatchSet. */
export interface WatchRequest {
	/** The version after which each watch resumes, empty for none, by the id of the watch: empty for WatchList. */
	readonly versions: ReadonlyMap<string, string>;
	/** The ids of the watches whose client has asked for bookmarks. */
	readonly bookmarked: ReadonlySet<string>;
	/** The same request with other versions, and with bookmarks. `resumptionOf` is called with each id. */
	resumed(resumptionOf: (watchId: string) => Resumption): Uint8Array;
}

/** Reads a request message. @throws MalformedMessage, or SyntaxError if it is JSON. */
export function readRequest(
	method: WatchMethod,
	format: "binary" | "json",
	message: Uint8Array,
): WatchRequest {
	if (format === "json") {
		return method === "WatchList" ? jsonList(message) : jsonSet(message);
	}
	return method === "WatchList" ? binaryList(message) : binarySet(message);
}

/** The numbers of the fields that are read or written, as in resource_service.proto. */
const fields = {
	listRequest: { afterVersion: 100, bookmarks: 101 },
	setRequest: { watches: 1 },
	watch: { id: 1, request: 2 },
} as const;

function binaryList(message: Uint8Array): WatchRequest {
	const { version, bookmarks } = scanListRequest(message, 0, message.length);
	return {
		versions: new Map([["", version]]),
		bookmarked: new Set(bookmarks ? [""] : []),
		// Of a field that occurs twice, the last value counts.
		resumed: (resumptionOf) => Buffer.concat([message, changesFor(resumptionOf(""))]),
	};
}

function binarySet(message: Uint8Array): WatchRequest {
	const watches: { readonly id: string; readonly bytes: Uint8Array }[] = [];
	const versions = new Map<string, string>();
	const bookmarked = new Set<string>();
	visitFields(message, 0, message.length, (number, start, end) => {
		if (number !== fields.setRequest.watches) {
			throw new MalformedMessage(`the set has an unknown field ${number}`);
		}
		let id = "";
		let request: ListRequest | undefined;
		visitFields(message, start, end, (field, fieldStart, fieldEnd) => {
			if (field === fields.watch.id) {
				id = Buffer.from(message.subarray(fieldStart, fieldEnd)).toString("utf8");
			} else if (field === fields.watch.request) {
				// An embedded message that occurs twice is merged.
				request = scanListRequest(message, fieldStart, fieldEnd, request);
			}
		});
		if (request === undefined) {
			throw new MalformedMessage("a watch has no request");
		}
		watches.push({ id, bytes: message.subarray(start, end) });
		versions.set(id, request.version);
		if (request.bookmarks) {
			bookmarked.add(id);
		}
	});
	return {
		...{ versions, bookmarked },
		resumed: (resumptionOf) =>
			Buffer.concat(
				watches.flatMap(({ id, bytes }) => {
					const resumption = resumptionOf(id);
					if (resumption === "omitted") {
						return [];
					}
					const changes = encodeField(fields.watch.request, changesFor(resumption));
					return [encodeField(fields.setRequest.watches, Buffer.concat([bytes, changes]))];
				}),
			),
	};
}

interface ListRequest {
	readonly version: string;
	readonly bookmarks: boolean;
}

/** @param before - what an earlier part of the same request has. */
function scanListRequest(
	message: Uint8Array,
	from: number,
	to: number,
	before: ListRequest = { version: "", bookmarks: false },
): ListRequest {
	let { version, bookmarks } = before;
	visitFields(
		...([message, from, to] as const),
		(number, start, end) => {
			if (number === fields.listRequest.afterVersion) {
				version = Buffer.from(message.subarray(start, end)).toString("utf8");
			}
		},
		(number, value) => {
			if (number === fields.listRequest.bookmarks) {
				bookmarks = value !== 0;
			}
		},
	);
	return { version, bookmarks };
}

/** The fields that are appended to a WatchListRequest. */
function changesFor(resumption: Resumption): Uint8Array {
	const { afterVersion, bookmarks } = fields.listRequest;
	return Buffer.concat([
		...(typeof resumption === "string"
			? []
			: [encodeField(afterVersion, Buffer.from(resumption.after))]),
		encodeNumberField(bookmarks, 1),
	]);
}

type JsonObject = Readonly<Record<string, unknown>>;

function jsonList(message: Uint8Array): WatchRequest {
	const request = objectOf(parse(message));
	return {
		versions: new Map([["", jsonVersion(request)]]),
		bookmarked: new Set(jsonBookmarks(request) ? [""] : []),
		resumed: (resumptionOf) => Buffer.from(JSON.stringify(withChanges(request, resumptionOf("")))),
	};
}

function jsonSet(message: Uint8Array): WatchRequest {
	const set = objectOf(parse(message));
	if (!Array.isArray(set.watches)) {
		throw new MalformedMessage("a set has no watches");
	}
	const watches = set.watches.map((each: unknown) => {
		const watch = requiredObject(each);
		return { watch, id: textOf(watch.id), request: requiredObject(watch.request) };
	});
	return {
		versions: new Map(watches.map(({ id, request }) => [id, jsonVersion(request)])),
		bookmarked: new Set(
			watches.filter(({ request }) => jsonBookmarks(request)).map(({ id }) => id),
		),
		resumed: (resumptionOf) => {
			const resumed = watches.flatMap(({ watch, id, request }) => {
				const resumption = resumptionOf(id);
				if (resumption === "omitted") {
					return [];
				}
				return [{ ...watch, request: withChanges(request, resumption) }];
			});
			return Buffer.from(JSON.stringify({ ...set, watches: resumed }));
		},
	};
}

/**
 * Parses a request, which is sent to servers as it was understood here. What they refuse must not become a request that they
 * accept: `JSON.parse` takes the last of two members of one name.
 */
function parse(message: Uint8Array): unknown {
	checkUniqueMembers(message);
	return JSON.parse(new TextDecoder().decode(message));
}

/** JSON has the name of a field in camel case, or as in its proto. */
function jsonVersion(request: JsonObject): string {
	return textOf(request.afterVersion ?? request.after_version);
}

function jsonBookmarks({ bookmarks }: JsonObject): boolean {
	if (bookmarks !== undefined && bookmarks !== null && typeof bookmarks !== "boolean") {
		throw new MalformedMessage("a boolean was expected");
	}
	return bookmarks === true;
}

function withChanges(request: JsonObject, resumption: Resumption): JsonObject {
	if (typeof resumption === "string") {
		return { ...request, bookmarks: true };
	}
	const { after_version: _, ...rest } = request;
	return { ...rest, afterVersion: resumption.after, bookmarks: true };
}

function objectOf(value: unknown): JsonObject {
	if (value === undefined || value === null) {
		return {};
	}
	if (typeof value !== "object" || Array.isArray(value)) {
		throw new MalformedMessage("an object was expected");
	}
	return value as JsonObject;
}

function requiredObject(value: unknown): JsonObject {
	if (value === undefined || value === null) {
		throw new MalformedMessage("an object was expected");
	}
	return objectOf(value);
}

function textOf(value: unknown): string {
	if (value === undefined || value === null) {
		return "";
	}
	if (typeof value !== "string") {
		throw new MalformedMessage("a string was expected");
	}
	return value;
}
