/** What bounds the protocol. Times are in milliseconds, counted monotonically. */
export interface ConstraintLimits {
	/** How long one call of another deployment may take. */
	readonly callMs: number;
	/** How often a write begins again when what it references changes under it. */
	readonly attempts: number;
	/** The longest pause between two of them; the first is a fiftieth of it. */
	readonly pauseMs: number;
	/** After which time a tentative source is asked about, from its first sight on. */
	readonly tentativeMs: number;
	/** After which time a deletion that is still asking is taken for one whose server died. */
	readonly checkingMs: number;
	/** How soon a deletion that waits asks again. */
	readonly requeryMs: number;
	/** How soon a target that was missing is looked for again. */
	readonly resolveRetryMs: number;
	/** Over which time an owner must be found missing three times before an ownee lets go of it. */
	readonly ownerGraceMs: number;
	/** How many resources one step of a cascade deletes or clears. */
	readonly pageSize: number;
	/** How many questions one call of another deployment carries. */
	readonly batchSize: number;
}

/** The limits of a server. */
export const defaultLimits: ConstraintLimits = {
	callMs: 5_000,
	attempts: 20,
	pauseMs: 250,
	tentativeMs: 30_000,
	checkingMs: 30_000,
	requeryMs: 2_000,
	resolveRetryMs: 30_000,
	ownerGraceMs: 30_000,
	pageSize: 100,
	batchSize: 200,
};
