export type { Cache, CacheOptions, IndexStats, OnUndecodable, TypeStats } from "./cache.ts";
export { CacheError, IndexError } from "./cache-error.ts";
export { cloning } from "./cloning.ts";
export { createCache } from "./create-cache.ts";
export type { DeepReadonly } from "./deep-readonly.ts";
export { type AnyIndex, type Index, type IndexFunctions, index } from "./index-definition.ts";
export {
	isKey,
	type Key,
	type KeyQuery,
	type OpenKey,
	type ReferenceLike,
	referenceKey,
	referenceKeyWithUid,
	type WholeReference,
} from "./key.ts";
export type {
	Queries,
	Query,
	QueryArgs,
	QueryResult,
	Reader,
	View,
	ViewMode,
} from "./reader.ts";
export {
	boundReferencesIndex,
	type HasBoundReferences,
	ownerIndex,
	type ReferenceIndex,
	referenceIndex,
	referencesIndex,
} from "./ready-indexes.ts";
export { shared } from "./shared.ts";
