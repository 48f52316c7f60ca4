import { heapUsed } from "@plinth/bench";
import type { Resource } from "@plinth/proto";
import { Album } from "../src/demo-types.fixture.ts";
import type { IndexCount } from "./contender.ts";
import { makeAlbum } from "./data-set.ts";
import { PlinthCache } from "./plinth-cache.ts";

/** The bytes of heap for each resource. */
export interface HeapUse {
	readonly size: number;
	readonly indexes: IndexCount;
	/** The resources themselves, which the cache shares with their creator. */
	readonly resource: number;
	readonly firstCache: number;
	/** Decoded forms, once a process; those that indexers asked for are counted with the first cache. */
	readonly decoded: number;
	readonly furtherCache: number;
}

/** Fills two caches with the same resources. */
export async function measureHeap(size: number, indexes: IndexCount): Promise<HeapUse> {
	const start = await heapUsed();
	const resources = Array.from({ length: size }, (_, i) => makeAlbum(i, size));
	const withResources = await heapUsed();
	const first = fill(resources, indexes);
	const withFirst = await heapUsed();
	for (const item of first.cache.iterate(Album)) {
		// Reading it decodes it.
		void item.data;
	}
	const withDecoded = await heapUsed();
	const further = fill(resources, indexes);
	const withFurther = await heapUsed();
	const each = (bytes: number) => Math.round(bytes / further.cache.size(Album));
	return {
		size,
		indexes,
		resource: each(withResources - start),
		firstCache: each(withFirst - withResources),
		decoded: each(withDecoded - withFirst),
		furtherCache: each(withFurther - withDecoded),
	};
}

function fill(resources: readonly Resource[], indexes: IndexCount): PlinthCache {
	const filled = new PlinthCache(indexes);
	for (const resource of resources) {
		filled.cache.insert(resource);
	}
	return filled;
}
