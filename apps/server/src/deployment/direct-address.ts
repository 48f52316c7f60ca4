import { defaultAdvertisedAddress } from "../cluster/advertised-address.ts";
import { formatListenAddress } from "../configuration/listen-address.ts";
import type { ServerOptions } from "../server-options.ts";

/**
 * The URL at which the other servers of the deployment reach the internal listener, if the address that it announces to
 * other deployments may be that of several servers: the host is that of the advertised address of the public listener if
 * one is configured, otherwise that by which its default is chosen. `undefined` if no other server can exist, if the
 * announced address is the default one, that on which the server listens, or if the port is chosen by the system.
 */
export function directAddress({
	storage,
	tls,
	advertisedAddress,
	deployment,
}: Pick<ServerOptions, "storage" | "tls" | "advertisedAddress" | "deployment">):
	| string
	| undefined {
	if (deployment === undefined || storage.kind !== "etcd") {
		return undefined;
	}
	const { address, internalListen } = deployment;
	const isDefault = address === `http://${formatListenAddress(internalListen)}`;
	if (isDefault || internalListen.port === 0) {
		return undefined;
	}
	const scheme = tls === undefined ? "http" : "https";
	const url = new URL(defaultAdvertisedAddress(scheme, internalListen));
	if (advertisedAddress !== undefined) {
		url.hostname = new URL(advertisedAddress).hostname;
	}
	return url.origin;
}
