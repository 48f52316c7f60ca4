/**
 * Who a storage is. What outlives a restart, and remembers `incarnation`, learns from another one that
 * the storage was restored meanwhile: that it may hold a past that others have seen go on.
 */
export interface StorageIdentity {
	/** A ULID, drawn when the storage was made. Backups and what is restored from them keep it. */
	readonly uid: string;
	/** A ULID, drawn when the storage was made, and anew with each restore: no two ever share one. */
	readonly incarnation: string;
	/** How many restores this storage knows to be behind it. A lost storage may have known of more. */
	readonly restores: number;
	/** The newest restore. Absent: it never was. */
	readonly restored?: StorageRestored;
}

/** What a storage knows of its newest restore. */
export interface StorageRestored {
	/** The incarnation that the backup was taken of. */
	readonly fromIncarnation: string;
	/** The newest version that the backup holds. */
	readonly fromVersion: string;
	/** The version that all resources got by the restore; later than any that was given out before. */
	readonly version: string;
	/** When it was restored, in milliseconds since 1970. */
	readonly atMs: number;
}
