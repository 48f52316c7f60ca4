import type { Random } from "@plinth/runtime";
import type { Event, Key, Place, Seen } from "../history/history.ts";
import type { Moments } from "./moments.ts";

/** What the clients share. */
export interface World {
	readonly random: Random;
	/** The address of a deployment. */
	address(deployment: string): string;
	readonly history: Event[];
	/** What was last seen at each place; nothing where it is not known. */
	readonly known: Map<Key, Seen | "absent">;
	/** Where each incarnation was that was ever seen. */
	readonly whereabouts: Map<string, Place>;
	/** The places that a client is busy with: calls to one place never overlap. */
	readonly busy: Set<Key>;
	/** Who waits for clients to send something. */
	readonly moments: Moments;
	/** The mean time between two calls of a client, in milliseconds. */
	readonly pauseMs: number;
}
