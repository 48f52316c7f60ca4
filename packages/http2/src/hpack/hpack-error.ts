/** A header block that breaks RFC 7541. The state of its decoder is lost: the connection must end. */
export class HpackError extends Error {
	override readonly name = "HpackError";
}
