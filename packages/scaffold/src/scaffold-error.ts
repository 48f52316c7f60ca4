/** Why something can't be generated, in a sentence for people. Nothing was written. */
export class ScaffoldError extends Error {
	override readonly name = "ScaffoldError";
}
