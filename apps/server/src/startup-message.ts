import type { Configuration } from "./configuration/configuration.ts";
import type { Module } from "./module/define-module.ts";

/** What a server says once it listens: where, with what, and the next thing to try. */
export function startupMessage(
	address: string,
	configuration: Pick<Configuration, "storage" | "dataDirectory" | "etcd" | "access">,
	modules: readonly Module[],
): string {
	const storage = whereItStores(configuration);
	const names = modules.map((module) => module.name).join(", ") || "none (see --module)";
	const access =
		configuration.access === undefined
			? "everyone who reaches this port has full rights"
			: `as ${configuration.access.file} says`;
	const token = configuration.access === undefined ? "" : '-H "authorization: Bearer $TOKEN" ';
	return `Plinth listens on ${address}
  stores   ${storage}
  modules  ${names}
  access   ${access}

Try next, in another terminal:
  curl -s ${token}${address}/plinth.resource.v1.ResourceService/List -H 'content-type: application/json' -d '{"type":{"group":"tenancy","groupVersion":"v1","kind":"Namespace"},"tenancy":{"partition":"*"}}'
`;
}

function whereItStores({
	storage,
	dataDirectory,
	etcd,
}: Pick<Configuration, "storage" | "dataDirectory" | "etcd">): string {
	if (etcd !== undefined) {
		return `in etcd at ${etcd.endpoints.join(", ")}`;
	}
	return storage === "memory" ? "in memory, until it stops" : `in ${dataDirectory}`;
}
