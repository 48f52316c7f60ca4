/** The header with the credential of a peer. */
export const peerHeader = "x-plinth-internal";

/** The value of the header. */
export function encodeCredential(peeringId: string, secret: string): string {
	return `peer ${peeringId}.${secret}`;
}

/** The id and the secret of a header, or `undefined` if it is no credential of a peer. */
export function decodeCredential(
	header: string | null,
): { readonly peeringId: string; readonly secret: string } | undefined {
	const match = /^peer ([0-9A-Z]{26})\.([\w-]{20,128})$/.exec(header ?? "");
	const [, peeringId = "", secret = ""] = match ?? [];
	return match === null ? undefined : { peeringId, secret };
}
