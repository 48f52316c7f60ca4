import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { createPeerings, type Peerings, peeringTypes } from "@plinth/peering";
import { Good } from "@plinth/peering/testing";
import {
	ReadRequestSchema,
	ResourceSchema,
	ResourceService,
	WriteRequestSchema,
} from "@plinth/proto";
import {
	PeerExchangeService,
	type StreamResponse,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { PeeringService } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { Namespace, Partition, Tombstone, TypeRegistry } from "@plinth/resource";
import { createResourceService, insecureAllowAll } from "@plinth/resource-service";
import { createRpcRouter, type RpcRouter } from "@plinth/rpc-server";
import { silentLogger } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import { clientTransport, withSimulatedDeadlines } from "../network/client-transport.ts";
import type { Exchange } from "../network/exchange.ts";
import type { Host, Network } from "../network/network.ts";
import { ServerCarrier } from "../network/server-carrier.ts";
import { followerOf } from "./follower.ts";
import type { SharedStorage } from "./shared-storage.ts";

/** What a server has to know of its cluster, and of the others. */
export interface ServerOptions {
	readonly name: string;
	readonly cluster: string;
	readonly network: Network;
	readonly shared: SharedStorage;
	/** The storage that peerings use, with a planted fault or without. */
	readonly peeringStorage: (backend: StorageBackend) => StorageBackend;
	/** A server of another cluster that a connection can lead to. @throws ConnectError if there is none. */
	readonly serverOf: (cluster: string) => string;
	/** Called with each message of an export that leaves the cluster, before it is sent. */
	readonly onExported: (message: StreamResponse) => void;
	/** Called with all bytes that peers are sent. */
	readonly onSentToPeer: (bytes: Uint8Array) => void;
	/** Called with failures that only bugs explain. */
	readonly onFault: (failure: unknown) => void;
}

/** How long calls may take that a stopping server has, in milliseconds. */
const stopLimitMs = 2_000;

/** A server of a simulated cluster: the resource service and the peerings, over the storage as this server sees it. */
export class ServerProcess implements Host {
	readonly name: string;
	readonly backend: StorageBackend;
	readonly #network: Network;
	readonly #router: RpcRouter;
	readonly #onSentToPeer: (bytes: Uint8Array) => void;
	readonly #streamsEnd = new AbortController();
	readonly #imports = new AbortController();
	readonly #importing: Promise<void>;
	/** Calls that have not ended. */
	#calls = 0;
	#isStopping = false;

	/** Starts it. */
	constructor(options: ServerOptions) {
		const { name, network, shared, onFault } = options;
		const { runtime } = network.faults;
		this.name = name;
		this.backend = followerOf(shared, network.faults);
		this.#network = network;
		this.#onSentToPeer = options.onSentToPeer;
		const registry: TypeRegistry = new TypeRegistry([
			...[Partition, Namespace, Tombstone, Good],
			...peeringTypes(() => registry),
		]);
		const logger = {
			...silentLogger,
			error: (fields: { readonly err?: unknown }) => onFault(fields.err),
		};
		const resources = createResourceService({
			...{ backend: this.backend, registry, runtime, logger, authorizer: insecureAllowAll },
		});
		const peerings = createPeerings({
			...{ registry, runtime, leases: shared.leases, logger: silentLogger },
			backend: options.peeringStorage(this.backend),
			identity: { incarnation: shared.incarnation },
			connect: ({ address }) => {
				const { hostname } = new URL(address);
				const to = () => options.serverOf(hostname);
				const transport = clientTransport({ network, to, protocol: "grpc" });
				return { transport: withSimulatedDeadlines(transport, network), close() {} };
			},
			report: async () => {},
		});
		this.#router = createRpcRouter({
			...{ clock: runtime.clock, streamsEnd: this.#streamsEnd.signal },
			onFault: (_, failure) => onFault(failure),
			jsonOptions: { registry: registry.messages() },
		});
		this.#router.service(ResourceService, resources);
		this.#router.service(PeeringService, peeringService(peerings, resources, options.cluster));
		this.#router.service(
			PeerExchangeService,
			observed(peerings.exchangeService, options.onExported),
		);
		this.#importing = peerings.run(this.#imports.signal);
		network.add(name, this);
	}

	handle(exchange: Exchange): void {
		if (exchange.head.target === "/readyz") {
			exchange.respond(this.#isStopping ? 503 : 200, {});
			exchange.end({});
			return;
		}
		const { target } = exchange.head;
		this.#calls += 1;
		const carrier = new ServerCarrier(exchange, {
			sent: target.startsWith(`/${PeerExchangeService.typeName}/`) ? this.#onSentToPeer : () => {},
			ended: () => {
				this.#calls -= 1;
			},
		});
		const plan = this.#router.plan(target, carrier.head);
		if (plan === undefined) {
			throw new Error(`the router has no plan for ${target}`);
		}
		this.#router.serve(plan, carrier);
	}

	/** Stops it as a server stops: its watches end, and its calls finish. */
	async stop(): Promise<void> {
		const { clock } = this.#network.faults.runtime;
		this.#isStopping = true;
		this.#network.drain(this.name);
		this.#streamsEnd.abort(new ConnectError("the server is stopping", Code.Unavailable));
		const endMs = clock.monotonic() + stopLimitMs;
		while (this.#calls > 0 && clock.monotonic() < endMs) {
			await this.#network.faults.wait(100);
		}
		this.crash();
		await this.#importing;
	}

	/** Stops it abruptly. What it has sent to the storage may still be committed. */
	crash(): void {
		this.#isStopping = true;
		this.#network.remove(this.name);
		this.#imports.abort(new Error("the server is gone"));
		void this.backend.close();
	}
}

function peeringService(
	peerings: Peerings,
	resources: ServiceImpl<typeof ResourceService>,
	cluster: string,
): ServiceImpl<typeof PeeringService> {
	return peerings.peeringService({
		address: () => `http://${cluster}`,
		read: async (id, call) => {
			const { resource } = await resources.read(create(ReadRequestSchema, { id }), call);
			return create(ResourceSchema, resource);
		},
		write: async (written, call) => {
			const request = create(WriteRequestSchema, { resource: written });
			return create(ResourceSchema, (await resources.write(request, call)).resource);
		},
	});
}

/** The service, whose streams are looked at. */
function observed(
	service: Peerings["exchangeService"],
	onMessage: (message: StreamResponse) => void,
): Peerings["exchangeService"] {
	return {
		...service,
		async *stream(...call) {
			for await (const message of service.stream(...call)) {
				onMessage(message as StreamResponse);
				yield message;
			}
		},
	};
}
