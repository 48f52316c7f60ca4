import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createUniversalHandlerClient, type UniversalClientFn } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { EventLog } from "@plinth/events";
import { ResourceService } from "@plinth/proto";
import { idOf, Partition, TypeRegistry } from "@plinth/resource";
import { ensureDefaultTenancy, insecureAllowAll } from "@plinth/resource-service";
import { LocalLeases, LocalTimedLeases, silentLogger, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, MemoryEventStorage } from "@plinth/storage";
import { describe, expect, it } from "vitest";
import { type Interfaces, type InterfacesOptions, registerServices } from "./register-services.ts";

const id = idOf(Partition, "default");

async function interfaces(options: Partial<InterfacesOptions> = {}): Promise<Interfaces> {
	const backend = createMemoryBackend();
	await ensureDefaultTenancy(backend, systemRuntime);
	const noGraph = { types: [], dependencies: [], cycles: [] };
	return registerServices({
		backend,
		histories: backend,
		references: {
			deploymentService: () => ({
				listDeployments: () => Promise.reject(new Error("the test has no deployments")),
				listMissing: () => Promise.reject(new Error("the test has no deployments")),
				settle: () => Promise.reject(new Error("the test has no deployments")),
			}),
			referenceService: () => ({
				listReferences: () => Promise.reject(new Error("the test has no references")),
				planDeletion: () => Promise.reject(new Error("the test has no references")),
			}),
		},
		events: new EventLog({
			storage: new MemoryEventStorage(systemRuntime.clock),
			...{ server: "test", isShared: false, runtime: systemRuntime, logger: silentLogger },
		}),
		copies: { kind: "taken-elsewhere", instead: "the test has no backups" },
		registry: new TypeRegistry([Partition]),
		authorizer: insecureAllowAll,
		allowedHosts: undefined,
		modules: [],
		controllers: {
			state: () => ({ holdsLease: true, controllers: [] }),
			work: () => undefined,
			reconcilesOf: () => [],
			graph: () => noGraph,
		},
		cluster: {
			own: {
				...{ id: "1", name: "test", address: "http://127.0.0.1:7575", startedAtMs: 0 },
				...{ version: "1.0.0", secret: "secret" },
			},
			askOthers: async () => [],
		},
		leases: { suspended: undefined },
		timedLeases: new LocalTimedLeases({ leases: new LocalLeases(), clock: systemRuntime.clock }),
		peerings: {
			exchangeService: {
				exchangeToken: () => Promise.reject(new Error("the test has no peerings")),
				rotateCredential: () => Promise.reject(new Error("the test has no peerings")),
				getExport: () => Promise.reject(new Error("the test has no peerings")),
				stream: () => {
					throw new Error("the test has no peerings");
				},
				acknowledge: () => Promise.reject(new Error("the test has no peerings")),
			},
			peeringService: () => ({
				createToken: () => Promise.reject(new Error("the test has no peerings")),
				establish: () => Promise.reject(new Error("the test has no peerings")),
				listPeerings: () => Promise.reject(new Error("the test has no peerings")),
			}),
		},
		overviews: { take: () => Promise.reject(new Error("the test has no overviews")) },
		runtime: systemRuntime,
		logger: silentLogger,
		limits: { messageBytes: 10_000 },
		acceptsCalls: () => true,
		isReady: () => true,
		enter: () => {},
		observers: [],
		streamsEnd: new AbortController().signal,
		callsEnd: new AbortController().signal,
		...options,
	});
}

/** A client of the external interface, serialized, without a socket. */
function externalClient({ external }: Interfaces) {
	const httpClient: UniversalClientFn = createUniversalHandlerClient(external.handlers);
	return createClient(
		ResourceService,
		createTransport({
			httpClient,
			baseUrl: "https://in-memory",
			useBinaryFormat: true,
			interceptors: [],
			acceptCompression: [],
			sendCompression: null,
			compressMinBytes: 0,
			readMaxBytes: 0xffff_ffff,
			writeMaxBytes: 0xffff_ffff,
		}),
	);
}

const denying = {
	authenticate: () => {
		throw new ConnectError("no token", Code.Unauthenticated);
	},
};

describe("the interfaces of a server", () => {
	it("share the stored objects with caches, and clone them for other callers", async () => {
		const { trustedShared, trustedCloned } = await interfaces();
		const shared = await trustedShared.read({ id });
		expect((await trustedShared.read({ id })).resource).toBe(shared.resource);
		const { resource } = await trustedCloned.read({ id });
		expect(resource).toEqual(shared.resource);
		expect(resource).not.toBe(shared.resource);
		expect(resource?.id).not.toBe(shared.resource?.id);
	});

	it("require a token on the external interface only", async () => {
		const all = await interfaces({ authorizer: denying });
		const refusal = { code: Code.Unauthenticated, rawMessage: "no token" };
		await expect(externalClient(all).read({ id })).rejects.toMatchObject(refusal);
		await expect(all.trustedShared.read({ id })).resolves.toBeDefined();
		await expect(all.trustedCloned.read({ id })).resolves.toBeDefined();
	});

	it("refuse external calls, and no others, while the server accepts none", async () => {
		let accepting = false;
		const all = await interfaces({ acceptsCalls: () => accepting });
		const external = externalClient(all);
		await expect(external.read({ id })).rejects.toMatchObject({ code: Code.Unavailable });
		await expect(all.trustedShared.read({ id })).resolves.toBeDefined();
		accepting = true;
		await expect(external.read({ id })).resolves.toBeDefined();
	});
});
