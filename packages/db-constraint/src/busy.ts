/**
 * A write met something that is about to change, or that has changed under it: it begins again.
 * Never leaves the constraint store.
 */
export class Busy extends Error {
	override readonly name = "Busy";
}
