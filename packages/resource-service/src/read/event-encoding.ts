import type { Resource, WatchEvent } from "@plinth/proto";
import { freezeInDevelopment } from "@plinth/resource";
import { shareEncodings } from "@plinth/rpc-server";
import { attachment } from "@plinth/runtime";
import type { DerivedData } from "@plinth/storage";

/** An upsert or a delete, as received from the storage. */
export interface Announced {
	readonly version?: string | undefined;
	readonly derived?: DerivedData | undefined;
}

/**
 * The messages of events, each made once for all watches and encoded once per format.
 *
 * The content of a message is a function of the event's version, the action, and the resource in the form that the
 * caller receives. Watches for which all three are equal share a message: read filters and forms are applied before,
 * and a message contains nothing else about a caller.
 *
 * Messages are kept with the event in the log of the storage, which counts their bytes and drops them. Events of a
 * snapshot are in no log, and their messages are not shared.
 */
export class EventEncoding {
	readonly #messages = attachment<object, WatchEvent[]>();
	/** The messages of the event that was requested last: usually, all watches request it in turn. */
	#lastKey: object | undefined;
	#last: WatchEvent[] = [];

	upsert(event: Announced, resource: Resource): WatchEvent {
		return this.#shared("upsert", event, resource) ?? upsert(resource, event.version);
	}

	deletion(event: Announced, resource: Resource): WatchEvent {
		return this.#shared("delete", event, resource) ?? deletion(resource, event.version);
	}

	#shared(
		action: "upsert" | "delete",
		{ version = "", derived }: Announced,
		resource: Resource,
	): WatchEvent | undefined {
		if (derived === undefined) {
			return undefined;
		}
		const { key } = derived;
		const messages = this.#messagesOf(key);
		for (const message of messages) {
			const { event } = message;
			if (
				event.case === action &&
				event.value.resource === resource &&
				message.version === version
			) {
				return message;
			}
		}
		const message = action === "upsert" ? upsert(resource, version) : deletion(resource, version);
		messages.push(freezeInDevelopment(message));
		derived.retain(messageBytes);
		return shareEncodings(message, (bytes) => {
			if (derived.key === key) {
				derived.retain(bytes);
			}
		});
	}

	#messagesOf(key: object): WatchEvent[] {
		if (this.#lastKey !== key) {
			let messages = this.#messages.get(key);
			if (messages === undefined) {
				messages = [];
				this.#messages.set(key, messages);
			}
			this.#lastKey = key;
			this.#last = messages;
		}
		return this.#last;
	}
}

/** The approximate size of a message without its resource, including the objects that hold it. */
const messageBytes = 256;

/** The message at the end of a snapshot. */
export function endOfSnapshot(version: string): WatchEvent {
	return message({ case: "endOfSnapshot", value: endOfSnapshotValue }, version);
}

/** The message with the position of an idle watch. */
export function bookmark(version: string): WatchEvent {
	return message({ case: "bookmark", value: bookmarkValue }, version);
}

const endOfSnapshotValue = Object.freeze({
	$typeName: "plinth.resource.v1.WatchEvent.EndOfSnapshot" as const,
});

const bookmarkValue = Object.freeze({
	$typeName: "plinth.resource.v1.WatchEvent.Bookmark" as const,
});

function upsert(resource: Resource, version: string | undefined): WatchEvent {
	return message(
		{ case: "upsert", value: { $typeName: "plinth.resource.v1.WatchEvent.Upsert", resource } },
		version,
	);
}

function deletion(resource: Resource, version: string | undefined): WatchEvent {
	return message(
		{ case: "delete", value: { $typeName: "plinth.resource.v1.WatchEvent.Delete", resource } },
		version,
	);
}

function message(event: WatchEvent["event"], version = ""): WatchEvent {
	return { $typeName: "plinth.resource.v1.WatchEvent", event, version };
}
