export {
	type Access,
	type AccessTarget,
	type Authorizer,
	allowed,
	type Decision,
	denialOf,
	denied,
	needsResource,
	operatorRead,
	operatorReference,
	operatorUndecodable,
	operatorWrite,
} from "./access.ts";
export { Namespace, Partition, Tombstone, tenancyFinalizer } from "./builtin-types.ts";
export { type Caller, CallerToken, isCrossTenancy, type NamedTarget } from "./caller.ts";
export {
	cachesDecodedForm,
	DecodeError,
	decode,
	decodeShared,
	encodeData,
	type ResourceInit,
	resourceOf,
	typeNameOf,
} from "./decode.ts";
export type { Decoded } from "./decoded.ts";
export {
	type EventInit,
	type EventRecord,
	type EventRecorder,
	eventProblem,
	noEvents,
} from "./event-recorder.ts";
export {
	addFinalizer,
	deletionTimestampKey,
	finalizersKey,
	finalizersOf,
	hasFinalizer,
	isMarkedForDeletion,
	removeFinalizer,
} from "./finalizers.ts";
export { deepFreeze, freezeInDevelopment, sharedObjectsAreFrozen } from "./freeze.ts";
export {
	assertWellFormedType,
	type FamilyLike,
	familyKey,
	gvkKey,
	sameType,
	type TypeLike,
} from "./gvk.ts";
export {
	displayName,
	idOf,
	nameKey,
	type ResourceName,
	referenceTo,
	sameName,
	tenancyOf,
	typeOf,
} from "./id.ts";
export { labelProblem, namePrefixProblem } from "./names.ts";
export { TypeRegistry } from "./registry.ts";
export {
	type AuthorizeHooks,
	defineType,
	type MutableDecoded,
	type ResourceType,
	type TypeHooks,
} from "./resource-type.ts";
export {
	defaultTenancyUnit,
	hasNamespace,
	hasPartition,
	scopeName,
	type TenancyLike,
} from "./scope.ts";
export { AsynchronousHook } from "./synchronous.ts";
export { isUlid, newUlid, ulidTimeMs } from "./ulid.ts";
