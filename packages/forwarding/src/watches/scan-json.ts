import { skipValue, stringAt, visitMembers } from "../messages/json-members.ts";
import {
	changeOf,
	type MessageScanner,
	type ScannedEvent,
	type ScannedMessage,
	type ScannedResource,
	unknownEvent,
	unreadResource,
	type WatchMethod,
} from "./scanned-message.ts";

/** The scanner of messages in JSON. It steps over the data of resources without reading it. */
export function jsonScanner(method: WatchMethod): MessageScanner {
	return method === "WatchSet" ? scanSetEvent : scanListEvent;
}

function scanListEvent(message: Uint8Array): ScannedMessage {
	const { event } = scanEvent(message, 0);
	return { watchId: "", content: event };
}

function scanSetEvent(message: Uint8Array): ScannedMessage {
	let watchId = "";
	let content: ScannedMessage["content"] = { ...unknownEvent, version: "" };
	visitMembers(message, 0, (name, start) => {
		switch (name) {
			case "watchId": {
				const { value, end } = stringAt(message, start);
				// The client has chosen it, and may have used characters that are escaped.
				watchId = JSON.parse(`"${value}"`) as string;
				return end;
			}
			case "event": {
				const { event, end } = scanEvent(message, start);
				content = event;
				return end;
			}
			case "end": {
				const { code, end } = scanEnd(message, start);
				content = { kind: "end", code };
				return end;
			}
			default:
				return skipValue(message, start);
		}
	});
	return { watchId, content };
}

function scanEnd(bytes: Uint8Array, from: number): { readonly code: number; readonly end: number } {
	let code = 0;
	const end = visitMembers(bytes, from, (name, start) => {
		const valueEnd = skipValue(bytes, start);
		if (name === "code") {
			code = Number(Buffer.from(bytes.subarray(start, valueEnd)).toString("utf8"));
		}
		return valueEnd;
	});
	return { code, end };
}

function scanEvent(
	bytes: Uint8Array,
	from: number,
): { readonly event: ScannedEvent; readonly end: number } {
	let event = unknownEvent;
	let version = "";
	const end = visitMembers(bytes, from, (name, start) => {
		switch (name) {
			case "upsert":
			case "delete": {
				const resource = unreadResource();
				const changeEnd = visitMembers(bytes, start, (member, memberStart) =>
					member === "resource"
						? scanResource(bytes, memberStart, resource)
						: skipValue(bytes, memberStart),
				);
				event = changeOf(name, resource);
				return changeEnd;
			}
			case "endOfSnapshot":
				event = { ...unknownEvent, kind: "end-of-snapshot" };
				return skipValue(bytes, start);
			case "bookmark":
				event = { ...unknownEvent, kind: "bookmark" };
				return skipValue(bytes, start);
			case "version": {
				const found = stringAt(bytes, start);
				version = found.value;
				return found.end;
			}
			default:
				return skipValue(bytes, start);
		}
	});
	return { event: { ...event, version, shows: version || event.shows }, end };
}

function scanResource(bytes: Uint8Array, from: number, resource: ScannedResource): number {
	return visitMembers(bytes, from, (name, start) => {
		if (name === "id") {
			return scanId(bytes, start, resource);
		}
		if (name === "version") {
			const { value, end } = stringAt(bytes, start);
			resource.version = value;
			return end;
		}
		return skipValue(bytes, start);
	});
}

function scanId(bytes: Uint8Array, from: number, resource: ScannedResource): number {
	return visitMembers(bytes, from, (name, start) => {
		if (name === "name" || name === "region") {
			const { value, end } = stringAt(bytes, start);
			resource[name] = value;
			return end;
		}
		if (name !== "tenancy") {
			return skipValue(bytes, start);
		}
		return visitMembers(bytes, start, (unit, unitStart) => {
			if (unit !== "partition" && unit !== "namespace") {
				return skipValue(bytes, unitStart);
			}
			const { value, end } = stringAt(bytes, unitStart);
			resource[unit] = value;
			return end;
		});
	});
}
