import type { Random } from "@plinth/runtime";
import type { Event, Key, ObservedResource, Place } from "../history/history.ts";
import type { SendNotifier } from "./send-notifier.ts";

/** The state that the clients share. */
export interface SharedState {
	readonly random: Random;
	/** The address of a deployment. */
	address(deployment: string): string;
	readonly history: Event[];
	/** The last known state of each place; no entry if it is not known. */
	readonly known: Map<Key, ObservedResource | "absent">;
	/** The place of each incarnation that was ever observed, by uid. */
	readonly placeOfUid: Map<string, Place>;
	/** The places that a client is using: calls to one place never overlap. */
	readonly inUse: Set<Key>;
	/** Notified of the calls that clients send. */
	readonly notifier: SendNotifier;
	/** The mean time between two calls of a client, in milliseconds. */
	readonly pauseMs: number;
}
