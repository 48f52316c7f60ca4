import type { ImportStore } from "./import-store.ts";
import type { ImportState, LiveImport } from "./live-import.ts";

/** The state of an import that this server runs. Durations are in milliseconds. */
export interface RunningState {
	readonly state: ImportState;
	/** For how long the copies have been behind; -1 if they were never complete. */
	readonly lagMs: number;
	/** How long ago the source was heard; -1 if never. */
	readonly ageMs: number;
	/** Messages that were received since the import was started here, heartbeats included. */
	readonly messages: number;
	/** Resources and types that could not be copied. */
	readonly leftOut: number;
	/** The number of copies, by type key. */
	readonly copies: ReadonlyMap<string, number>;
}

/** The state of an import at present. */
export async function runningState({
	live,
	store,
}: {
	readonly live: LiveImport;
	readonly store: Pick<ImportStore, "record" | "counts">;
}): Promise<RunningState> {
	const { state, lagMs, ageMs, messages } = live;
	return {
		...{ state, lagMs, ageMs, messages },
		leftOut: Number(store.record.leftOutTotal),
		copies: await store.counts(),
	};
}
