import type { DescMessage, MessageInitShape } from "@bufbuild/protobuf";
import type { Code } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import { displayName, gvkKey, type TypeLike } from "@plinth/resource";

/** An expected failure of a storage. All of them are subclasses. */
export abstract class StorageError extends Error {
	constructor(message: string, options?: ErrorOptions) {
		super(message, options);
		this.name = new.target.name;
	}
}

/** The resource, or that incarnation of it, does not exist. */
export class NotFound extends StorageError {
	readonly id: ID;

	constructor(id: ID) {
		super(`${displayName(id)} not found`);
		this.id = id;
	}
}

/** The stored version is not the one that the commit expects. */
export class CasFailure extends StorageError {
	/** The positions of the mutations that failed. */
	readonly mutations: readonly number[];
	/** The display names of their resources, in the same order. */
	readonly names: readonly string[];

	constructor(mutations: readonly number[], names: readonly string[]) {
		super(`compare-and-swap failed: ${names.join(", ")}`);
		this.mutations = mutations;
		this.names = names;
	}
}

/** A resource that a commit writes or asserts is stored with another uid. */
export class WrongUid extends StorageError {
	/** The positions of the mutations that failed. */
	readonly mutations: readonly number[];
	/** The display names of their resources, in the same order. */
	readonly names: readonly string[];

	constructor(mutations: readonly number[], names: readonly string[]) {
		super(`stored with another uid: ${names.join(", ")}`);
		this.mutations = mutations;
		this.names = names;
	}
}

/** The resource is stored under another group version than the requested one. */
export class GroupVersionMismatch extends StorageError {
	readonly requested: TypeLike;
	readonly stored: Resource;

	constructor(requested: TypeLike, stored: Resource) {
		super(
			`resource was requested with GroupVersion="${requested.groupVersion}", but stored with GroupVersion="${stored.id?.type?.groupVersion}" (${gvkKey(requested)})`,
		);
		this.requested = requested;
		this.stored = stored;
	}
}

/**
 * The storage can't be reached, has failed permanently, or is closed; the message says which. A commit that fails
 * with it may have been applied, or may still be.
 */
export class StorageUnavailable extends StorageError {}

/** The lease whose fence a commit carries has another holder. */
export class Fenced extends StorageError {
	readonly lease: string;

	constructor(lease: string) {
		super(`lease ${lease} has another holder`);
		this.lease = lease;
	}
}

/** A message that is returned to the caller as a detail of the error. */
export interface RefusalDetail {
	readonly desc: DescMessage;
	readonly value: MessageInitShape<DescMessage>;
}

/** A decorator of the storage refuses the commit, with the code and details to return to the caller. */
export class Refused extends StorageError {
	readonly code: Code;
	/** Messages for the details of the error returned to the caller. */
	readonly details: readonly RefusalDetail[];

	constructor(code: Code, message: string, details: readonly RefusalDetail[] = []) {
		super(message);
		this.code = code;
		this.details = details;
	}
}

/** A limit of the storage is reached; the message names it. */
export class Exhausted extends StorageError {}

/** The watch can't continue without a gap: discard the state built from it and watch again. */
export class WatchClosed extends StorageError {}

/** The stored state needs more memory than the process may use. */
export class StateTooLarge extends StorageError {}

/** The snapshot was released, or ended because it retained too much memory: list again. */
export class SnapshotEnded extends StorageError {}

/** A watch can't resume after that version: it is compacted or not reached yet. */
export class VersionCompacted extends StorageError {
	readonly version: string;

	constructor(version: string, reason: string) {
		super(`can't watch after version ${version}: ${reason}`);
		this.version = version;
	}
}
