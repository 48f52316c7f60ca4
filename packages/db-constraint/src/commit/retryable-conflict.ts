/**
 * A write depends on something that is being checked for deletion, or that changed concurrently: it is
 * retried from the start. Never leaves the constraint store.
 */
export class RetryableConflict extends Error {
	override readonly name = "RetryableConflict";
}
