/** A header block that breaks RFC 7541. The decoder's state is lost, so the connection must end. */
export class HpackError extends Error {
	override readonly name = "HpackError";
}
