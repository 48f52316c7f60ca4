import type { ConnectError, HandlerContext } from "@connectrpc/connect";

/** Admits the watches of sets, so that each counts towards the limits and metrics of streams as a WatchList does. */
export interface WatchAdmission {
	/** The maximum number of watches in one set. */
	readonly watchesPerSet: number;
	/**
	 * Admits one watch of a set.
	 *
	 * @param index - its index in the set. The stream itself was admitted as a call, and counts for the first watch.
	 * @returns a function to be called once when the watch has ended, with its failure if there is one.
	 * @throws ConnectError ResourceExhausted if a limit is reached. The watch then ends with that error.
	 */
	admit(call: HandlerContext, index: number): (failure: ConnectError | undefined) => void;
}

/** The maximum number of watches in one set, unless the server has another. */
export const defaultWatchesPerSet = 100;

/** Admits all watches. */
export const admitAllWatches: WatchAdmission = {
	watchesPerSet: defaultWatchesPerSet,
	admit: () => () => {},
};
