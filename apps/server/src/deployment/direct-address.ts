import type { Logger } from "@plinth/runtime";
import { defaultAdvertisedAddress, isWildcard } from "../cluster/advertised-address.ts";
import {
	formatListenAddress,
	isLoopback,
	type ListenAddress,
} from "../configuration/listen-address.ts";
import type { ServerOptions } from "../server-options.ts";

/**
 * The URL at which the other servers of the deployment reach the internal listener, if the address that it announces to
 * other deployments may be that of several servers. That is the address on which it listens or, if that is a wildcard or a
 * loopback address, the host of the advertised address of the public listener. Without one, a wildcard stands for the host
 * name of the machine. `undefined` if no other server can exist, if the announced address is the default one, that on which
 * the server listens, if the port is chosen by the system, or, with a warning, if the host name can't be part of a URL.
 *
 * @param machine - the host name of the machine.
 */
export function directAddress(
	{
		storage,
		tls,
		advertisedAddress,
		deployment,
	}: Pick<ServerOptions, "storage" | "tls" | "advertisedAddress" | "deployment">,
	logger: Pick<Logger, "warn">,
	machine?: string,
): string | undefined {
	if (deployment === undefined || storage.kind !== "etcd") {
		return undefined;
	}
	const { address, internalListen } = deployment;
	const isDefault = address === `http://${formatListenAddress(internalListen)}`;
	if (isDefault || internalListen.port === 0) {
		return undefined;
	}
	const scheme = tls === undefined ? "http" : "https";
	const direct =
		advertisedAddress === undefined || isReachedOnlyAt(internalListen)
			? defaultAdvertisedAddress(scheme, internalListen, machine)
			: `${scheme}://${new URL(advertisedAddress).hostname}:${internalListen.port}`;
	const origin = URL.parse(direct)?.origin;
	if (origin === undefined) {
		logger.warn(
			{ address: direct },
			"the other servers of this deployment can't call this one directly: its address is not a valid URL. Set --advertised-address to a host by which they reach it",
		);
	}
	return origin;
}

/** Whether other machines reach a listener at the address on which it listens, and at no other one. */
function isReachedOnlyAt(listen: ListenAddress): boolean {
	const isSpecific = !isWildcard(listen.host) && !isLoopback(listen);
	return isSpecific && URL.canParse(`http://${formatListenAddress(listen)}`);
}
