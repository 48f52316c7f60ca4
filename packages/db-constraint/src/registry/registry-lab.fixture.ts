import { type Client, Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { decodeShared, encodeData, idOf, type ResourceType } from "@plinth/resource";
import { ensureDefaultTenancy } from "@plinth/resource-service";
import { LocalLeases, type Logger, SuspendableLeases, systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend, type StorageIdentity } from "@plinth/storage";
import { onTestFinished } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import type { ReferenceManager } from "../controller/reference-manager.ts";
import { withLocalFences } from "../lab/local-fences.fixture.ts";
import { controllerClients, ownService } from "../lab/own-client.fixture.ts";
import type { Constraints } from "../node/constraints.ts";
import { openReferences, partsOf, type References } from "../node/open-references.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import type { DeploymentRegistry } from "./deployment-registry.ts";
import { Deployment, metaService, metaTypes } from "./meta-types.ts";

/** Options of a deployment of a lab. */
export interface StartOptions {
	readonly backend?: StorageBackend;
	readonly storageIncarnation?: string;
	/** The addresses of the meta deployments that it knows, as `address`. */
	readonly metas?: readonly string[];
	/** A URL, or the host of one. Default: its name. */
	readonly address?: string;
	/** Where it listens, if `address` is that of a load balancer. That leads to the server which has used it longest. */
	readonly directAddress?: string;
	/** Default: those of the service, in v1. */
	readonly types?: readonly ResourceType[];
	/** The version that it announces. Default: the last one of its types. */
	readonly version?: string;
	/** Whether its controllers start once it serves. Default: they do. */
	readonly controls?: boolean;
	/** Default: no logging. */
	readonly logger?: Logger;
}

interface StartedOptions {
	readonly references: References;
	readonly controlled: Promise<void>;
	readonly failures: readonly unknown[];
	readonly backend: StorageBackend;
	readonly client: Client<typeof ResourceService>;
	readonly stop: () => Promise<void>;
}

/** A running server of a deployment. */
export class Started {
	readonly references: References;
	/** Resolves once it serves, and its controllers run if they are to; rejects if it stops before. */
	readonly controlled: Promise<void>;
	/** Why it must stop: a server of the product would. */
	readonly failures: readonly unknown[];
	/** The storage, without references. */
	readonly backend: StorageBackend;
	readonly client: Client<typeof ResourceService>;
	readonly stop: () => Promise<void>;

	constructor(options: StartedOptions) {
		this.references = options.references;
		this.controlled = options.controlled;
		this.failures = options.failures;
		this.backend = options.backend;
		this.client = options.client;
		this.stop = options.stop;
	}

	get constraints(): Constraints {
		return partsOf(this.references).constraints;
	}

	get registry(): DeploymentRegistry {
		return partsOf(this.references).registry ?? raise("the server has no registry");
	}

	/** The manager of its controllers, which runs once it is `controlled`. */
	get manager(): ReferenceManager {
		return partsOf(this.references).manager ?? raise("the server has no controllers yet");
	}
}

/** Deployments in one process that discover each other through a registry. */
export class RegistryLab {
	readonly #transports = new Map<string, Transport>();
	/** End the streams of each server when it stops, by its address. */
	readonly #ends = new Map<string, AbortController>();
	readonly #leases = new WeakMap<StorageBackend, LocalLeases>();

	/** Promises that delay confirmations to a deployment, by its name. */
	readonly confirmations = new Map<string, Promise<void>>();

	/** What the server at each address that was called is known to announce. */
	readonly announced = new Map<string, string>();

	/** How many reads of resources fail from now on. */
	failingReads = 0;
	/** What each read of a resource waits for before it is sent; it fails with this. */
	heldReads: Promise<void> | undefined;
	/** What the response to each write of a resource waits for. */
	heldWrites: Promise<void> | undefined;

	/** Starts a deployment, named `<service>-<region>`, and waits until it serves and its controllers run. */
	async start(service: string, region: string, options: StartOptions = {}): Promise<Started> {
		const started = await this.begin(service, region, options);
		await started.controlled;
		return started;
	}

	/** Starts a deployment as a server does, and waits only until others can call it: it is not registered yet. */
	async begin(service: string, region: string, options: StartOptions = {}): Promise<Started> {
		const runtime = systemRuntime;
		const { storageIncarnation, version } = options;
		const address = addressOf(options.address ?? `${service}-${region}`);
		const directAddress = options.directAddress && addressOf(options.directAddress);
		const { controls = true } = options;
		const kept = options.backend ?? createMemoryBackend({ runtime });
		const local = this.#leasesOf(kept);
		const leases = new SuspendableLeases(local);
		const types = service === metaService ? metaTypes : (options.types ?? typesOf(service));
		const foreignTypes = service === "alpha" ? [] : [Thing];
		const failures: unknown[] = [];
		let client: Client<typeof ResourceService> | undefined;
		const references = await openReferences({
			...{ leases, runtime },
			...(options.logger && { logger: options.logger }),
			backend: withLocalFences(kept, local),
			...(storageIncarnation && { identity: identityOf(storageIncarnation) }),
			descriptor: new ServiceDescriptor({ types, foreignTypes, service }),
			deployment: {
				...{ service, region, address },
				...(directAddress && { directAddress }),
				...(version && { version }),
				metaAddresses: (options.metas ?? ["meta-r1"]).map(addressOf),
				connect: (to, announced) => this.#connect(to, announced),
				ownService: () => client ?? raise("the server is not open yet"),
			},
			// A call between servers of a machine that is busy may take long.
			limits: { callTimeoutMs: 60_000 },
			onFailure: (failure) => failures.push(failure),
		});
		await ensureDefaultTenancy(references.store, runtime);
		const clients = controllerClients(references.store, types, runtime);
		client = clients.client;
		const transport = createInProcessTransport((router) => {
			router.service(SchemaMixinService, references.service);
			router.service(ResourceService, ownService(references.store, types, runtime));
		}, runtime);
		const end = new AbortController();
		const isBalanced = directAddress !== undefined && this.#transports.has(address);
		const listening = [...(isBalanced ? [] : [address]), ...(directAddress ? [directAddress] : [])];
		for (const each of listening) {
			this.#transports.set(each, transport);
			this.#ends.set(each, end);
		}
		const stop = async () => {
			for (const each of listening) {
				if (this.#transports.get(each) === transport) {
					this.#transports.delete(each);
				}
			}
			end.abort();
			await references.close();
		};
		onTestFinished(stop);
		const controlled = references.discover(end.signal).then(() => {
			if (controls) {
				references.control({ ...clients, leases });
			}
		});
		// Those who wait for it are told.
		controlled.catch(() => {});
		return new Started({ references, controlled, failures, backend: kept, client, stop });
	}

	/** The leases that the servers of a storage share. */
	#leasesOf(backend: StorageBackend): LocalLeases {
		const leases = this.#leases.get(backend) ?? new LocalLeases();
		this.#leases.set(backend, leases);
		return leases;
	}

	/** Changes a Deployment at a meta deployment. */
	async change(
		meta: Started,
		name: string,
		fields: Partial<{ address: string; disabled: boolean; wantedVersion: string }>,
	): Promise<void> {
		for (;;) {
			const { resource } = await meta.client.read({ id: idOf(Deployment, name) });
			if (resource === undefined) {
				throw new Error(`no Deployment ${name}`);
			}
			const data = { ...decodeShared(Deployment, resource).data, ...fields };
			const next = { ...resource, data: encodeData(Deployment.schema, data) };
			try {
				await meta.client.write({ resource: next });
				return;
			} catch (failure) {
				// The deployment has announced something at the same time.
				if (ConnectError.from(failure).code !== Code.Aborted) {
					throw failure;
				}
			}
		}
	}

	/** Deletes a Deployment at a meta deployment. */
	async delete(meta: Started, name: string): Promise<void> {
		await meta.client.delete({ id: idOf(Deployment, name) });
	}

	/** A transport to the deployment that has the address at the time of a call. */
	#connect(address: string, announced = address): Transport {
		this.announced.set(address, announced);
		// As the product's transport does, this throws where the address is no URL.
		const { hostname } = new URL(address);
		const now = () =>
			this.#transports.get(address) ??
			raise(new ConnectError(`${address} is down`, Code.Unavailable));
		return {
			unary: async (...args) => {
				if (args[0].name === "ConfirmBlockades") {
					await this.confirmations.get(hostname);
				}
				if (args[0].name === "Read") {
					await this.heldReads;
				}
				if (args[0].name === "Read" && this.failingReads > 0) {
					this.failingReads -= 1;
					throw new ConnectError("the request was lost", Code.Unavailable);
				}
				const response = await now().unary(...args);
				if (args[0].name === "Write") {
					await this.heldWrites;
				}
				return response;
			},
			stream: async (method, signal, ...args) => {
				const transport = now();
				const ends = [signal, this.#ends.get(address)?.signal].flatMap((each) => each ?? []);
				return transport.stream(method, AbortSignal.any(ends), ...args);
			},
		};
	}
}

/** Resolves once the condition holds, which is checked after each change of the registry. */
export async function whenKnown(registry: DeploymentRegistry, holds: () => boolean): Promise<void> {
	while (!holds()) {
		await new Promise<void>((resolve) => {
			const stop = registry.onChange(() => {
				stop();
				resolve();
			});
		});
	}
}

/** The address of a server that is named by its host, as addresses are registered. */
function addressOf(named: string): string {
	return named.includes("://") ? named : `http://${named}`;
}

function typesOf(service: string): readonly ResourceType[] {
	return service === "alpha" ? [Thing] : [Widget];
}

/** The identity of a storage, in one of its incarnations. */
function identityOf(incarnation: string): StorageIdentity {
	return { uid: "01STORAGE", incarnation, restores: 0 };
}

function raise(failure: unknown): never {
	throw failure instanceof Error ? failure : new Error(String(failure));
}
