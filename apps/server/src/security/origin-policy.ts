import type { Authorizer } from "@plinth/resource";
import { advertisedHostName } from "../cluster/advertised-address.ts";
import type { ListenAddress } from "../configuration/listen-address.ts";
import {
	hostForm,
	originForm,
	parseHostName,
	parseOrigin,
} from "../listener/origin/host-header.ts";
import type { OriginPolicy } from "../listener/origin/origin-check.ts";
import type { ServerOptions } from "../server-options.ts";

/**
 * The hosts and origins that the public listener of a server accepts. If it listens on a host name, that name is
 * among them; so is the host name at which the other servers of a cluster reach it.
 *
 * @throws Error that quotes a value which is not a host name or not an origin.
 */
export function originPolicy(
	options: Pick<ServerOptions, "storage" | "allowedHosts" | "cors" | "tls" | "advertisedAddress">,
	listen: ListenAddress,
	authorizer: Authorizer,
): OriginPolicy {
	const { allowedHosts = [], cors, tls } = options;
	const open = authorizer.tokenless !== undefined;
	const hosts = allowedHosts.map((value) =>
		checked("allowedHosts", value, parseHostName, hostForm),
	);
	const own = [
		listen.host,
		// The name by which the other servers of the cluster call this one.
		...(options.storage.kind === "etcd"
			? [advertisedHostName(options.advertisedAddress, listen)]
			: []),
	].flatMap((name) => (name && parseHostName(name)) || []);
	const origins = cors?.allowedOrigins.map((value) =>
		checked("cors.allowedOrigins", value, parseOrigin, originForm),
	);
	return {
		scheme: tls === undefined ? "http" : "https",
		allowedOrigins: new Set(origins),
		...((open || hosts.length > 0) && {
			allowedHosts: new Set([...hosts, ...own]),
		}),
	};
}

function checked(
	option: string,
	value: string,
	parse: (value: string) => string | undefined,
	form: string,
): string {
	const parsed = parse(value);
	if (parsed === undefined) {
		throw new Error(`${option} ${JSON.stringify(value)} ${form}`);
	}
	return parsed;
}
