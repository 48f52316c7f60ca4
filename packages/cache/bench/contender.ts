import type { ID, Reference } from "@plinth/proto";
import type { AlbumItem } from "./data-set.ts";

/** How many indexes beside the one by ID. */
export type IndexCount = 0 | 1 | 5;

/** A way to keep albums. Each has loops of its own, so that none runs on code warmed for another. */
export interface Contender {
	insertAll(items: readonly AlbumItem[]): void;
	deleteAll(ids: readonly ID[]): void;
	/** Returns how many were found. */
	getAll(ids: readonly ID[]): number;
	/** Returns how many were listed: all albums of each label. */
	listLabels(labels: readonly Reference[]): number;
	listGenres(genres: readonly Reference[]): number;
	/** Returns how many were found. */
	parents(paths: readonly string[]): number;
}
