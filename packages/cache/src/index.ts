export type { Cache, CacheOptions, IndexStats, TypeStats, UndecodableListener } from "./cache.ts";
export { CacheError, IndexError } from "./cache-error.ts";
export { cloningView } from "./cloning.ts";
export { createCache } from "./create-cache.ts";
export type { DeepReadonly } from "./deep-readonly.ts";
export { type AnyIndex, defineIndex, type Index, type IndexFunctions } from "./index-definition.ts";
export {
	type ExactReference,
	isKey,
	type Key,
	type KeyPrefix,
	type KeyQuery,
	type ReferenceLike,
	referenceKey,
	referenceKeyWithUid,
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
export { sharedView } from "./shared.ts";
