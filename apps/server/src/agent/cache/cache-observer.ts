/** Counts what caches do. */
export interface CacheObserver {
	/** A call for cached types was served from caches, or forwarded. */
	called(outcome: "served" | "forwarded"): void;
}
