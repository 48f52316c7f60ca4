import { create } from "@bufbuild/protobuf";
import {
	createCatalogModule,
	HealthCheck,
	HealthCheckSchema,
	Service,
	ServiceSchema,
	Workload,
	WorkloadSchema,
} from "@plinth/example-catalog";
import { idOf, resourceOf } from "@plinth/resource";
import { createServer, type Server, type ServerOptions } from "@plinth/server";

/** A server with the catalog. */
export interface CatalogServer {
	readonly server: Server;
	/** The URL of the console. */
	readonly url: string;
	/** The hosts whose next probes pass. */
	readonly healthy: Set<string>;
	/** The hosts whose next probes throw: their reconciles fail. */
	readonly broken: Set<string>;
}

/** Starts a server with the catalog, whose probes find what the caller says. */
export async function startCatalogServer(
	options: Partial<ServerOptions> = {},
): Promise<CatalogServer> {
	const healthy = new Set<string>();
	const broken = new Set<string>();
	const module = createCatalogModule(async ({ host }) => {
		if (broken.has(host)) {
			throw new Error(`can't probe ${host}: <img src=x onerror=alert(1)>`);
		}
		return healthy.has(host)
			? { passed: true, reason: "Responded", message: `${host} responds` }
			: { passed: false, reason: "ConnectionRefused", message: `nothing listens on ${host}` };
	});
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [module],
		...options,
	});
	await server.start();
	return { server, url: `${server.address}/console/`, healthy, broken };
}

/** Declares a workload with a health check. */
export async function declareWorkload(
	{ client }: Pick<Server, "client">,
	name: string,
	host: string,
	port = 80,
): Promise<void> {
	const { resource } = await client.write({
		resource: resourceOf(Workload, {
			id: idOf(Workload, name),
			data: create(WorkloadSchema, { host, ports: { http: port } }),
		}),
	});
	await client.write({
		resource: resourceOf(HealthCheck, {
			id: idOf(HealthCheck, name),
			...(resource?.id && { owner: resource.id }),
			data: create(HealthCheckSchema, {
				probe: { case: "http", value: { portName: "http" } },
				intervalMs: 1_000,
			}),
		}),
	});
}

/** Declares the service of all workloads whose names begin with `web-`. */
export async function declareService({ client }: Pick<Server, "client">): Promise<void> {
	await client.write({
		resource: resourceOf(Service, {
			id: idOf(Service, "web"),
			data: create(ServiceSchema, { workloadPrefix: "web-", portName: "http" }),
		}),
	});
}
