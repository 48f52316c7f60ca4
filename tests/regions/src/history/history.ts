/** The kinds of resources of the example. */
export type Kind = "Project" | "AccessKey" | "Rack" | "Device";

/** A name of a resource. Several incarnations may have it, one after another. */
export interface Place {
	readonly kind: Kind;
	readonly region: string;
	readonly name: string;
}

/** A place as a string, for example `Rack r1 (us-west2)`. Unique among all deployments. */
export type Key = string;

/** The content that a client writes. */
export interface Content {
	/** Identifies the write. */
	readonly note: string;
	/** The target of each field. */
	readonly references: Readonly<Record<string, Key>>;
	/** The uids of its owners. */
	readonly owners: readonly string[];
}

/** A resource as it was observed. */
export interface ObservedResource extends Content {
	readonly uid: string;
	/** Whether it is being deleted. */
	readonly marked: boolean;
}

/** The outcome of a call that changes something. */
export type Outcome<Done> =
	| { readonly kind: "done"; readonly value: Done }
	/** Nothing was changed, for the given reason. */
	| { readonly kind: "refused"; readonly code: string; readonly message: string }
	/** It took effect, or did not. */
	| { readonly kind: "unknown"; readonly why: string };

/** The start and end of a call, in milliseconds; `Infinity` if it may still take effect. */
interface Call {
	readonly key: Key;
	readonly from: number;
	readonly to: number;
}

/** A resource was created or replaced. */
export interface Write extends Call {
	readonly call: "write";
	readonly content: Content;
	readonly outcome: Outcome<ObservedResource>;
}

/** A deletion was requested. */
export interface Deletion extends Call {
	readonly call: "delete";
	/** `false` if there was nothing to delete. */
	readonly outcome: Outcome<boolean>;
}

/** A resource was read strongly, or found missing. */
export interface ReadEvent extends Call {
	readonly call: "read";
	readonly seen: ObservedResource | undefined;
}

/** A call of a client. Calls to the same key never overlap. */
export type Event = Write | Deletion | ReadEvent;

/** All calls of clients, in the order of their ends. */
export type History = readonly Event[];

/** The key of a place. */
export function keyOf({ kind, region, name }: Place): Key {
	return `${kind} ${name} (${region})`;
}

/** The observation of a resource by a call, if any: by a read, or by the response to a write. */
export function observationOf(
	event: Event,
): { readonly seen: ObservedResource | undefined } | undefined {
	if (event.call === "read") {
		return event;
	}
	return event.call === "write" && event.outcome.kind === "done"
		? { seen: event.outcome.value }
		: undefined;
}
