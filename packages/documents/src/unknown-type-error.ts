/** No type, or more than one, has a name. The message is for people, and says what to do. */
export class UnknownTypeError extends Error {
	override readonly name = "UnknownTypeError";
}
