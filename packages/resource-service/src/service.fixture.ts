import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import {
	type Client,
	Code,
	ConnectError,
	createClient,
	type ServiceImpl,
	type Transport,
} from "@connectrpc/connect";
import { connectNodeAdapter, createGrpcTransport } from "@connectrpc/connect-node";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import {
	type Authorizer,
	type EventRecorder,
	Namespace,
	Partition,
	type ResourceType,
	Tombstone,
	TypeRegistry,
} from "@plinth/resource";
import type { Logger, Runtime } from "@plinth/runtime";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend, type StorageLimits } from "@plinth/storage";
import { expect } from "vitest";
import { insecureAllowAll } from "./access/open-access.ts";
import { demoTypes } from "./demo.fixture.ts";
import { correctConnectErrors } from "./errors/sendable-errors.ts";
import { createResourceService } from "./resource-service.ts";
import { ensureDefaultTenancy } from "./tenancy/tenancy-defaults.ts";

/** A service under test, and a client to it. */
export interface TestService extends AsyncDisposable {
	readonly client: Client<typeof ResourceService>;
	readonly backend: StorageBackend;
	readonly registry: TypeRegistry;
}

/** The options of a test service. */
export interface TestServiceOptions {
	/** The region of the service; none by default. */
	readonly region?: string;
	readonly authorizer?: Authorizer;
	readonly runtime?: Runtime;
	readonly logger?: Logger;
	readonly events?: EventRecorder;
	/** Limits of the storage that differ from its own. */
	readonly limits?: Partial<StorageLimits>;
	readonly decorate?: (backend: StorageBackend) => StorageBackend;
	/** In place of the types of the tests. */
	readonly types?: readonly ResourceType[];
}

/** Serves a service in some way. Returns a client to it, and what ends it. */
export type Connect = (service: ServiceImpl<typeof ResourceService>) => Promise<
	AsyncDisposable & {
		readonly client: Client<typeof ResourceService>;
	}
>;

const ways = new Map<string, Connect>([
	["in-process", connectInProcess],
	["gRPC over a socket", connectOverSocket],
]);

/** How the client reaches the service without anything between. */
export const directConnections: readonly string[] = [...ways.keys()];

/** How the client reaches the service: the tests that concern what a caller sees run over each. */
export const connections: string[] = [...directConnections];

/** From now on, the tests run over this connection alone: called before they are declared. */
export function connectOnlyBy(connection: string, connect: Connect): void {
	ways.set(connection, connect);
	connections.splice(0, connections.length, connection);
}

/** Starts a service over an empty in-memory storage, with the types of the tests. */
export async function startService(
	connection: string,
	options: TestServiceOptions = {},
): Promise<TestService> {
	const { runtime = systemRuntime, logger = silentLogger, types = demoTypes } = options;
	const registry = new TypeRegistry([Partition, Namespace, Tombstone, ...types]);
	const memory = createMemoryBackend({
		runtime,
		...(options.limits && { limits: options.limits }),
	});
	const backend = options.decorate?.(memory) ?? memory;
	await ensureDefaultTenancy(backend, runtime);
	const service = createResourceService({
		backend,
		registry,
		runtime,
		logger,
		authorizer: options.authorizer ?? insecureAllowAll,
		...(options.events && { events: options.events }),
		region: options.region,
	});
	const connect = ways.get(connection);
	if (connect === undefined) {
		throw new Error(`no connection is called ${connection}`);
	}
	const connected = await connect(service);
	return {
		client: connected.client,
		backend,
		registry,
		async [Symbol.asyncDispose]() {
			await connected[Symbol.asyncDispose]();
			await backend.close();
		},
	};
}

async function connectInProcess(service: ServiceImpl<typeof ResourceService>) {
	const transport = createInProcessTransport((router) => router.service(ResourceService, service));
	return {
		client: createInProcessClient(ResourceService, transport),
		[Symbol.asyncDispose]: async () => {},
	};
}

async function connectOverSocket(service: ServiceImpl<typeof ResourceService>) {
	const stop = new AbortController();
	const server = createServer(
		connectNodeAdapter({
			routes: (router) => router.service(ResourceService, service),
			shutdownSignal: stop.signal,
			requestGate: correctConnectErrors,
		}),
	);
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as AddressInfo;
	const transport: Transport = createGrpcTransport({ baseUrl: `http://127.0.0.1:${port}` });
	return {
		client: createClient(ResourceService, transport),
		async [Symbol.asyncDispose]() {
			stop.abort(new ConnectError("the test is over", Code.Unavailable));
			server.close();
		},
	};
}

/** Expects a call to be refused with that code and exactly that message. */
export async function expectRefusal(
	call: Promise<unknown>,
	code: Code,
	message: string | RegExp,
): Promise<void> {
	const error = await call.then(
		() => new Error("the call was not refused"),
		(reason: unknown) => reason,
	);
	expect(error).toBeInstanceOf(ConnectError);
	if (error instanceof ConnectError) {
		expect({ code: Code[error.code], message: error.rawMessage }).toEqual({
			code: Code[code],
			message: typeof message === "string" ? message : expect.stringMatching(message),
		});
	}
}
