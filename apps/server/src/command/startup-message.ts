import type { Configuration } from "../configuration/configuration.ts";
import type { Module } from "../module/define-module.ts";

/** The message of a server that has started: its address, its storage and modules, and a first call to try. */
export function startupMessage(
	address: string,
	configuration: Pick<Configuration, "storage" | "dataDirectory" | "etcd" | "access">,
	modules: readonly Module[],
): string {
	const storage = describeStorage(configuration);
	const names = modules.map((module) => module.name).join(", ") || "none (see --module)";
	const access =
		configuration.access === undefined
			? "every caller has full rights"
			: `according to ${configuration.access.file}`;
	const token = configuration.access === undefined ? "" : '-H "authorization: Bearer $TOKEN" ';
	return `Plinth listens on ${address}
  storage  ${storage}
  modules  ${names}
  access   ${access}

Try next, in another terminal:
  curl -s ${token}${address}/plinth.resource.v1.ResourceService/List -H 'content-type: application/json' -d '{"type":{"group":"tenancy","groupVersion":"v1","kind":"Namespace"},"tenancy":{"partition":"*"}}'
`;
}

function describeStorage({
	storage,
	dataDirectory,
	etcd,
}: Pick<Configuration, "storage" | "dataDirectory" | "etcd">): string {
	if (etcd !== undefined) {
		return `etcd at ${etcd.endpoints.join(", ")}`;
	}
	return storage === "memory"
		? "memory; all data is lost when the server stops"
		: `sqlite in ${dataDirectory}`;
}
