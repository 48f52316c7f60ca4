import { isServerAddress } from "./server-address.ts";

/**
 * The header with which a deployment names its running servers, in each call of another deployment and in each response
 * to one: `version=17,http://a,http://b`. A response without it is not from the deployment, or from a server that is older
 * than this header. Servers that are older than the version leave it out, and ignore it.
 */
export const endpointsHeader = "x-plinth-endpoints";

/** The maximum number of addresses in a header. */
const maxEndpoints = 32;

const versionPattern = /^version=([1-9]\d{0,39})$/;

/**
 * The value of the header.
 *
 * @param version - of the deployment's storage, at which these are its servers. Default: not named.
 */
export function encodeEndpoints(addresses: Iterable<string>, version = ""): string {
	const named = [...addresses].slice(0, maxEndpoints);
	return (version === "" ? named : [`version=${version}`, ...named]).join(",");
}

/**
 * The addresses in a header; those are left out that are no http or https URLs, or have another scheme than the registered
 * address: a credential that is meant for TLS must not be sent without it.
 */
export function decodeEndpoints(value: string, registeredAddress: string): readonly string[] {
	const isUsable = isServerAddress(registeredAddress);
	const scheme = isUsable ? URL.parse(registeredAddress)?.protocol : undefined;
	const addresses = value.split(",", maxEndpoints + 1).flatMap((text) => {
		const url = URL.parse(text.trim());
		return url !== null && url.protocol === scheme ? [url.origin] : [];
	});
	return [...new Set(addresses)].slice(0, maxEndpoints);
}

/** The version in a header; empty if it is not named. */
export function versionOfEndpoints(value: string): string {
	return versionPattern.exec(value.split(",", 1)[0] ?? "")?.[1] ?? "";
}
