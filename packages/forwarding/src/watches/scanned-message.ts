/** What was read of an event of a watch. */
export interface ScannedEvent {
	readonly kind: "change" | "end-of-snapshot" | "bookmark" | "unknown";
	/**
	 * Identifies a change among all changes that the watch ever sends: what happened, the region, the tenancy, the name and the
	 * version of the resource. A resource has a version once, and that version is replaced or deleted once. Empty if `kind` is
	 * another.
	 */
	readonly change: string;
	/** The version to resume after; empty if the event does not end its revision. */
	readonly version: string;
	/** The newest version that it shows; empty if that is not known. A deletion has none of its own. */
	readonly shows: string;
}

/** What was read of a message in the response of WatchList or WatchSet. */
export interface ScannedMessage {
	/** The id of the watch in the set; empty for WatchList. */
	readonly watchId: string;
	readonly content: ScannedEvent | ScannedEnd;
}

/** The last message of a watch in a set. */
export interface ScannedEnd {
	readonly kind: "end";
	/** A code of gRPC; 0 if the watch has not failed. */
	readonly code: number;
}

/** The method of a watch. */
export type WatchMethod = "WatchList" | "WatchSet";

/** Reads what is needed of a message. @throws MalformedMessage */
export type MessageScanner = (message: Uint8Array) => ScannedMessage;

/** What was read of the resource of a change. */
export interface ScannedResource {
	name: string;
	/** Of a copy of another region; empty for a resource of this one. */
	region: string;
	partition: string;
	namespace: string;
	version: string;
}

/** A resource of which nothing was read. */
export function unreadResource(): ScannedResource {
	return { name: "", region: "", partition: "", namespace: "", version: "" };
}

/** The event of a change. */
export function changeOf(
	action: "upsert" | "delete",
	{ name, region, partition, namespace, version }: ScannedResource,
): Omit<ScannedEvent, "version"> {
	return name === "" || version === ""
		? unknownEvent
		: {
				kind: "change",
				change: `${action} ${region}/${partition}/${namespace}/${name}@${version}`,
				shows: action === "upsert" ? version : "",
			};
}

/** Nothing is known of an event yet. */
export const unknownEvent: Omit<ScannedEvent, "version"> = {
	...{ kind: "unknown", change: "", shows: "" },
};
