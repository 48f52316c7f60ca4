/** What the storage itself says has happened, revision by revision. */
export interface StorageRecord {
	/** All changes of registers, in order. */
	readonly registers: readonly RegisterChange[];
	/** What happened to the key that the holder of a lease owns, in order. */
	readonly leases: readonly LeaseChange[];
	/** All writes of the singleton controller, in order. */
	readonly effects: readonly EffectChange[];
}

/** A change of one register. */
export interface RegisterChange {
	readonly revision: number;
	readonly register: string;
	/** Absent if it was deleted. */
	readonly text?: string;
}

/** A change of who holds a lease. */
export type LeaseChange =
	| {
			readonly kind: "put";
			readonly lease: string;
			readonly revision: number;
			/** The revision that created the key, which is earlier if the key existed before. */
			readonly createRevision: number;
			/** The process that holds it. */
			readonly process: number;
	  }
	| { readonly kind: "delete"; readonly lease: string; readonly revision: number };

/** A write that a singleton controller made while it thought that it was the only one. */
export interface EffectChange {
	readonly revision: number;
	readonly process: number;
	/** One run of the controller: it begins and ends within one hold of the lease. */
	readonly run: string;
}
