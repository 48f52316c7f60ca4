/**
 * Identifies a storage and its history. A client that remembers `incarnation` learns from a different one
 * that the storage was restored meanwhile, and may have lost changes that others have seen.
 */
export interface StorageIdentity {
	/** A ULID, generated when the storage was created. Backups and restores keep it. */
	readonly uid: string;
	/** A ULID, generated when the storage was created and again by each restore; never reused. */
	readonly incarnation: string;
	/** The number of restores that this storage knows of. A lost storage may have known of more. */
	readonly restores: number;
	/** The newest restore; absent if it was never restored. */
	readonly restored?: StorageRestored;
}

/** The newest restore of a storage. */
export interface StorageRestored {
	/** The incarnation from which the backup was taken. */
	readonly fromIncarnation: string;
	/** The newest version in the backup. */
	readonly fromVersion: string;
	/** The version of all resources after the restore; greater than any issued before. */
	readonly version: string;
	/** When it was restored, in milliseconds since 1970. */
	readonly atMs: number;
}
