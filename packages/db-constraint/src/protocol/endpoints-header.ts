/**
 * The header with which a deployment names its running servers, in each call of another deployment and in each response
 * to one. A response without it is not from the deployment, or from a server that is older than this header.
 */
export const endpointsHeader = "x-plinth-endpoints";

/** The maximum number of addresses in a header. */
const maxEndpoints = 32;

/** The value of the header. */
export function encodeEndpoints(addresses: Iterable<string>): string {
	return [...addresses].slice(0, maxEndpoints).join(",");
}

/**
 * The addresses in a header; those are left out that are no URLs, or have another scheme than the registered address:
 * a credential that is meant for TLS must not be sent without it.
 */
export function decodeEndpoints(value: string, registeredAddress: string): readonly string[] {
	const scheme = URL.parse(registeredAddress)?.protocol;
	const addresses = value.split(",", maxEndpoints).flatMap((text) => {
		const url = URL.parse(text.trim());
		return url !== null && url.protocol === scheme ? [url.origin] : [];
	});
	return [...new Set(addresses)];
}
