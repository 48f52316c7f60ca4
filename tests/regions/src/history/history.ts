/** The kinds of resources of the example. */
export type Kind = "Project" | "AccessKey" | "Rack" | "Device";

/** A name of a resource: several incarnations may have it, one after the other. */
export interface Place {
	readonly kind: Kind;
	readonly region: string;
	readonly name: string;
}

/** A place in words, as in `Rack r1 (us-west2)`: unique among all deployments. */
export type Key = string;

/** What a user writes into a resource. */
export interface Content {
	/** Tells the write from all others. */
	readonly note: string;
	/** What each field references. */
	readonly references: Readonly<Record<string, Key>>;
	/** The uids of its owners. */
	readonly owners: readonly string[];
}

/** A resource as it was read. */
export interface Seen extends Content {
	readonly uid: string;
	/** Whether it is being deleted. */
	readonly marked: boolean;
}

/** What came of a call that changes something. */
export type Outcome<Done> =
	| { readonly kind: "done"; readonly value: Done }
	/** Nothing was changed, and the server says why. */
	| { readonly kind: "refused"; readonly code: string; readonly message: string }
	/** It was done, or not. */
	| { readonly kind: "unknown"; readonly why: string };

/** When a call began and ended, in milliseconds; one that may still be done has no end (`Infinity`). */
interface Call {
	readonly key: Key;
	readonly from: number;
	readonly to: number;
}

/** A resource was created or replaced. */
export interface Write extends Call {
	readonly call: "write";
	readonly content: Content;
	readonly outcome: Outcome<Seen>;
}

/** A deletion was asked for. */
export interface Deletion extends Call {
	readonly call: "delete";
	/** `false` where there was nothing to do. */
	readonly outcome: Outcome<boolean>;
}

/** A resource was read strongly, or found missing. */
export interface Look extends Call {
	readonly call: "look";
	readonly seen: Seen | undefined;
}

/** What a user did to one resource. Calls to the same key never overlap. */
export type Event = Write | Deletion | Look;

/** All that users did, in the order in which it ended. */
export type History = readonly Event[];

/** The key of a place. */
export function keyOf({ kind, region, name }: Place): Key {
	return `${kind} ${name} (${region})`;
}

/** What was seen of the resource, where the call says it: by the answer of a write, too. */
export function sightOf(event: Event): { readonly seen: Seen | undefined } | undefined {
	if (event.call === "look") {
		return event;
	}
	return event.call === "write" && event.outcome.kind === "done"
		? { seen: event.outcome.value }
		: undefined;
}
