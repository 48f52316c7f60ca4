import { createServer, type ServerHttp2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { type Client, createClient } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { createInProcessTransport } from "@plinth/in-process";
import { type Resource, ResourceService, TypeService } from "@plinth/proto";
import {
	type Authorizer,
	idOf,
	Namespace,
	newUlid,
	Partition,
	type ResourceType,
	Tombstone,
	TypeRegistry,
} from "@plinth/resource";
import {
	createResourceService,
	createTypeService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend } from "@plinth/storage";
import { Film, Hall } from "./cinema.fixture.ts";

/** A server of the types of the tests on a port of its own. */
export interface CinemaServer extends AsyncDisposable {
	readonly address: string;
	/** Full rights, in process. */
	readonly client: Client<typeof ResourceService>;
	/** Stores a resource unchecked, with its generation if it has one, as a server with other types may have. */
	store(resource: Resource): Promise<void>;
	/** Breaks all connections, as a network does. */
	breakConnections(): void;
	/** Stops listening, and breaks all connections. */
	stop(): Promise<void>;
	/** Listens again, at the same address. */
	restart(): Promise<void>;
	/** How many watches have been opened over the network. */
	readonly watches: () => number;
}

/** What a test may change. */
export interface CinemaOptions {
	readonly authorizer?: Authorizer;
	/** Types besides those of all tests. */
	readonly types?: readonly ResourceType[];
	/** The region of the server. */
	readonly region?: string;
	/** Whether the server ignores regions in requests, as earlier releases do. */
	readonly ignoresRegions?: boolean;
	/** Runs before a write of the network is carried out. */
	readonly beforeWrite?: () => Promise<void>;
}

/** A request as a server reads it that does not know regions. */
function withoutRegion<M extends object>(message: M): M {
	if ("region" in message) {
		message.region = "";
	}
	if ("id" in message && typeof message.id === "object" && message.id !== null) {
		Object.assign(message.id, { region: undefined });
	}
	return message;
}

async function* withoutRegions<M extends object>(messages: AsyncIterable<M>): AsyncIterable<M> {
	for await (const message of messages) {
		yield withoutRegion(message);
	}
}

/** Starts a server over an empty storage in memory. */
export async function startCinema(options: CinemaOptions = {}): Promise<CinemaServer> {
	const registry = new TypeRegistry([
		Partition,
		Namespace,
		Tombstone,
		Film,
		Hall,
		...(options.types ?? []),
	]);
	const backend = createMemoryBackend({ runtime: systemRuntime });
	await ensureDefaultTenancy(backend, systemRuntime);
	const authorizer = options.authorizer ?? insecureAllowAll;
	const service = createResourceService({
		backend,
		registry,
		region: options.region,
		authorizer,
	});
	const trusted = createResourceService({
		backend,
		registry,
		authorizer: insecureAllowAll,
	});
	let watches = 0;
	const handler = connectNodeAdapter({
		routes: (router) => {
			router.service(ResourceService, service, {
				interceptors: [
					(next) => async (request) => {
						if (request.method.name === "Write") {
							await options.beforeWrite?.();
						}
						watches += Number(request.method.name === "WatchList");
						if (!options.ignoresRegions) {
							return next(request);
						}
						return request.stream
							? next({ ...request, message: withoutRegions(request.message) })
							: next({ ...request, message: withoutRegion(request.message) });
					},
				],
			});
			router.service(TypeService, createTypeService({ registry, authorizer }));
		},
	});
	const sessions = new Set<ServerHttp2Session>();
	const breakConnections = () => {
		for (const session of sessions) {
			session.destroy();
		}
		sessions.clear();
	};
	const listen = async (port: number) => {
		const server = createServer(handler);
		server.on("session", (session) => sessions.add(session));
		await new Promise<void>((resolve) => server.listen(port, "127.0.0.1", resolve));
		return server;
	};
	let server = await listen(0);
	const { port } = server.address() as AddressInfo;
	const stop = async () => {
		const closed = new Promise((resolve) => server.close(resolve));
		breakConnections();
		await closed;
	};
	return {
		address: `http://127.0.0.1:${port}`,
		client: createClient(
			ResourceService,
			createInProcessTransport((router) => router.service(ResourceService, trusted)),
		),
		async store(resource) {
			const id = resource.id ?? idOf(Partition, "");
			const stored = await backend.read(id, { consistency: "strong" }).catch(() => undefined);
			const uid = stored?.id?.uid ?? newUlid(systemRuntime);
			await backend.commit([
				{
					op: "put",
					resource: {
						...resource,
						id: { ...id, uid },
						generation: resource.generation || newUlid(systemRuntime),
					},
					expectedVersion: stored?.version ?? "",
				},
			]);
		},
		breakConnections,
		stop,
		restart: async () => {
			server = await listen(port);
		},
		watches: () => watches,
		async [Symbol.asyncDispose]() {
			if (server.listening) {
				await stop();
			}
			await backend.close();
		},
	};
}
