import { visitFields } from "../messages/protobuf-fields.ts";
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

/** The numbers of the fields that are read, as in resource.proto and resource_service.proto. */
const fields = {
	event: { upsert: 1, delete: 2, endOfSnapshot: 3, bookmark: 100, version: 101 },
	change: { resource: 1 },
	resource: { id: 1, version: 3 },
	id: { name: 2, tenancy: 4, region: 100 },
	tenancy: { partition: 1, namespace: 2 },
	setEvent: { watchId: 1, event: 2, end: 3 },
	end: { code: 1 },
} as const;

/** The scanner of messages in Protobuf: it follows the lengths of fields, and does not decode the data of resources. */
export function binaryScanner(method: WatchMethod): MessageScanner {
	return method === "WatchSet"
		? scanSetEvent
		: (message) => ({ watchId: "", content: scanEvent(message, 0, message.length) });
}

function scanSetEvent(message: Uint8Array): ScannedMessage {
	let watchId = "";
	let content: ScannedMessage["content"] = { ...unknownEvent, version: "" };
	visitFields(message, 0, message.length, (number, start, end) => {
		if (number === fields.setEvent.watchId) {
			watchId = text(message, start, end);
		} else if (number === fields.setEvent.event) {
			content = scanEvent(message, start, end);
		} else if (number === fields.setEvent.end) {
			content = { kind: "end", code: scanCode(message, start, end) };
		}
	});
	return { watchId, content };
}

function scanCode(bytes: Uint8Array, from: number, to: number): number {
	let code = 0;
	visitFields(
		bytes,
		from,
		to,
		() => {},
		(number, value) => {
			if (number === fields.end.code) {
				code = value;
			}
		},
	);
	return code;
}

function scanEvent(bytes: Uint8Array, from: number, to: number): ScannedEvent {
	let event = unknownEvent;
	let version = "";
	visitFields(bytes, from, to, (number, start, end) => {
		switch (number) {
			case fields.event.upsert:
				event = changeOf("upsert", scanChange(bytes, start, end));
				break;
			case fields.event.delete:
				event = changeOf("delete", scanChange(bytes, start, end));
				break;
			case fields.event.endOfSnapshot:
				event = { ...unknownEvent, kind: "end-of-snapshot" };
				break;
			case fields.event.bookmark:
				event = { ...unknownEvent, kind: "bookmark" };
				break;
			case fields.event.version:
				version = text(bytes, start, end);
				break;
		}
	});
	return { ...event, version, shows: version || event.shows };
}

function scanChange(bytes: Uint8Array, from: number, to: number): ScannedResource {
	const resource = unreadResource();
	visitFields(bytes, from, to, (number, start, end) => {
		if (number === fields.change.resource) {
			scanResource(bytes, start, end, resource);
		}
	});
	return resource;
}

function scanResource(
	bytes: Uint8Array,
	from: number,
	to: number,
	resource: ScannedResource,
): void {
	visitFields(bytes, from, to, (number, start, end) => {
		if (number === fields.resource.version) {
			resource.version = text(bytes, start, end);
		} else if (number === fields.resource.id) {
			scanId(bytes, start, end, resource);
		}
	});
}

function scanId(bytes: Uint8Array, from: number, to: number, resource: ScannedResource): void {
	visitFields(bytes, from, to, (number, start, end) => {
		if (number === fields.id.name) {
			resource.name = text(bytes, start, end);
		} else if (number === fields.id.region) {
			resource.region = text(bytes, start, end);
		} else if (number === fields.id.tenancy) {
			visitFields(bytes, start, end, (unit, unitStart, unitEnd) => {
				if (unit === fields.tenancy.partition) {
					resource.partition = text(bytes, unitStart, unitEnd);
				} else if (unit === fields.tenancy.namespace) {
					resource.namespace = text(bytes, unitStart, unitEnd);
				}
			});
		}
	});
}

function text(bytes: Uint8Array, start: number, end: number): string {
	return Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).toString("utf8");
}
