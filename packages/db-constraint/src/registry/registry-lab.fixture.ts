import { type Client, Code, ConnectError, type Transport } from "@connectrpc/connect";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { decodeShared, encodeData, idOf, type ResourceType, TypeRegistry } from "@plinth/resource";
import {
	createResourceService,
	ensureDefaultTenancy,
	insecureAllowAll,
} from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { createMemoryBackend, type StorageBackend } from "@plinth/storage";
import { onTestFinished } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { type Constraints, createConstraints } from "../node/constraints.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { ResourceShadow } from "../shadow/shadow-records.ts";
import { recordDeletedDeployments } from "./deleted-deployments.ts";
import { DeploymentRegistry } from "./deployment-registry.ts";
import { Deployment, metaService, metaTypes } from "./meta-types.ts";

/** Options of a deployment of a lab. */
export interface StartOptions {
	readonly backend?: StorageBackend;
	readonly storageIncarnation?: string;
	/** The addresses of the meta deployments that it knows. */
	readonly metas?: readonly string[];
	/** Default: its name. */
	readonly address?: string;
	/** Default: those of the service. */
	readonly types?: readonly ResourceType[];
}

/** A running deployment. */
export interface Started {
	readonly registry: DeploymentRegistry;
	readonly constraints: Constraints;
	readonly backend: StorageBackend;
	readonly client: Client<typeof ResourceService>;
	stop(): Promise<void>;
}

/** Deployments in one process that discover each other through a registry. */
export class RegistryLab {
	readonly #transports = new Map<string, Transport>();
	/** End the streams of each server when it stops, by its address. */
	readonly #ends = new Map<string, AbortController>();

	/** Promises that delay confirmations to a deployment, by its name. */
	readonly confirmations = new Map<string, Promise<void>>();

	/** How many reads of resources fail from now on. */
	failingReads = 0;

	/** Starts a deployment, named `<service>-<region>`, and waits until it is registered. */
	async start(service: string, region: string, options: StartOptions = {}): Promise<Started> {
		const started = await this.begin(service, region, options);
		await started.registry.ready(AbortSignal.timeout(300_000));
		return started;
	}

	/** Starts a deployment. */
	async begin(service: string, region: string, options: StartOptions = {}): Promise<Started> {
		const runtime = systemRuntime;
		const name = `${service}-${region}`;
		const { address = name } = options;
		const isMeta = service === metaService;
		const kept = options.backend ?? createMemoryBackend({ runtime });
		const backend = isMeta ? recordDeletedDeployments(kept, runtime) : kept;
		const own = isMeta ? metaTypes : (options.types ?? (service === "alpha" ? [Thing] : [Widget]));
		const descriptor = new ServiceDescriptor({
			types: own,
			foreignTypes: service === "alpha" ? [] : [Thing],
			service,
		});
		let client: Client<typeof ResourceService> | undefined;
		const registry = new DeploymentRegistry({
			deployment: { service, region, version: "v1", address },
			descriptor,
			backend,
			metaAddresses: options.metas ?? ["meta-r1"],
			...(isMeta && { ownMeta: () => client ?? raise("not yet") }),
			connect: (address) => this.#connect(address),
			dropped: () => constraints.context.index.dropped,
			...(options.storageIncarnation && { storageIncarnation: options.storageIncarnation }),
			runtime,
			callTimeoutMs: 500,
		});
		const constraints: Constraints = createConstraints({
			backend,
			descriptor,
			environment: registry,
			runtime,
			limits: { callTimeoutMs: 60_000 },
		});
		constraints.context.index.onRegistryEntry((entry) => registry.followStored(entry));
		await registry.open();
		await constraints.schemaPass.begin();
		await ensureDefaultTenancy(constraints.store, runtime);
		const resources = createResourceService({
			backend: constraints.store,
			registry: new TypeRegistry([...own, ResourceShadow]),
			authorizer: insecureAllowAll,
		});
		const transport = createInProcessTransport((router) => {
			router.service(SchemaMixinService, constraints.service);
			router.service(ResourceService, resources);
		}, runtime);
		client = createInProcessClient(ResourceService, transport);
		this.#transports.set(address, transport);
		const end = new AbortController();
		this.#ends.set(address, end);
		const running = Promise.allSettled([constraints.run(end.signal), registry.run(end.signal)]);
		const stop = async () => {
			this.#transports.delete(address);
			end.abort();
			await running;
		};
		onTestFinished(stop);
		const started = { registry, constraints, backend: kept, client, stop };
		return started;
	}

	/** Changes a Deployment at a meta deployment. */
	async change(
		meta: Started,
		name: string,
		fields: Partial<{ disabled: boolean; wantedVersion: string }>,
	): Promise<void> {
		const { resource } = await meta.client.read({ id: idOf(Deployment, name) });
		if (resource === undefined) {
			throw new Error(`no Deployment ${name}`);
		}
		const data = { ...decodeShared(Deployment, resource).data, ...fields };
		const next = { ...resource, data: encodeData(Deployment.schema, data) };
		await meta.client.write({ resource: next });
	}

	/** Deletes a Deployment at a meta deployment. */
	async delete(meta: Started, name: string): Promise<void> {
		await meta.client.delete({ id: idOf(Deployment, name) });
	}

	/** A transport to the deployment that has the address at the time of a call. */
	#connect(address: string): Transport {
		const now = () =>
			this.#transports.get(address) ??
			raise(new ConnectError(`${address} is down`, Code.Unavailable));
		return {
			unary: async (...args) => {
				if (args[0].name === "ConfirmBlockades") {
					await this.confirmations.get(address);
				}
				if (args[0].name === "Read" && this.failingReads > 0) {
					this.failingReads -= 1;
					throw new ConnectError("the request was lost", Code.Unavailable);
				}
				return now().unary(...args);
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

function raise(failure: unknown): never {
	throw failure instanceof Error ? failure : new Error(String(failure));
}
