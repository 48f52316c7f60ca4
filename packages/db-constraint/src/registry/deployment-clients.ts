import { type Client, Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { RegistryEntry } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Runtime } from "@plinth/runtime";
import {
	decodeEndpoints,
	encodeEndpoints,
	versionOfEndpoints,
} from "../protocol/endpoints-header.ts";
import { type EndpointAddresses, siblingsOf } from "../shadow/endpoint-addresses.ts";
import { createBalancedTransport } from "./balanced-transport.ts";
import type { DeploymentInfo, Sibling } from "./environment.ts";
import type { RegisteredDeployment, RegistryView } from "./registry-view.ts";
import type { OwnServers, RunningServers } from "./running-servers.ts";
import { storedServers } from "./stored-view.ts";

/** Options of `DeploymentClients`. */
export interface DeploymentClientsOptions {
	/** Where this server is reached. */
	readonly own: EndpointAddresses;
	readonly view: RegistryView;
	/** The running servers of the other deployments. */
	readonly running: RunningServers;
	/** The running servers of this deployment. */
	readonly ownServers: () => OwnServers;
	/**
	 * Creates a transport to the internal listener of a deployment.
	 *
	 * @param announced - what the server at the address announces to other deployments, if it is of this deployment: its
	 *   certificate may be for that host name.
	 */
	readonly connect: (address: string, announced?: string) => Transport;
	/** Called when other servers are known than before. */
	readonly onServers: () => void;
	/** Called when older ones are stored than are known. */
	readonly onOlderServers: () => void;
	/** Called when another deployment says that it has dropped the sources of a deleted deployment. */
	readonly onDeleted: (uid: string, by: DeploymentInfo) => void;
	/** Called when another deployment says that a deployment has a successor. */
	readonly onSucceeded: (uid: string, successorUid: string) => void;
	readonly runtime: Runtime;
}

/** The clients of the other deployments, each of which calls the running servers of one, and of the servers of this one. */
export class DeploymentClients {
	readonly #options: DeploymentClientsOptions;
	/** By uid. */
	readonly #clients = new Map<string, Client<typeof SchemaMixinService>>();

	constructor(options: DeploymentClientsOptions) {
		this.#options = options;
	}

	/** The client of a deployment. @throws ConnectError Unavailable if it is not known, or is disabled. */
	of(uid: string): Client<typeof SchemaMixinService> {
		const known = this.#options.view.deployments().get(uid);
		if (known === undefined || known.disabled) {
			const what = known === undefined ? "is not known" : `(${known.name}) is disabled`;
			throw new ConnectError(`deployment ${uid} ${what}`, Code.Unavailable);
		}
		const before = this.#clients.get(uid);
		if (before !== undefined) {
			return before;
		}
		const client = createClient(SchemaMixinService, this.#transportTo(known));
		this.#clients.set(uid, client);
		return client;
	}

	#transportTo(deployment: RegisteredDeployment): Transport {
		const { uid } = deployment;
		const { view, running, connect, onDeleted, onSucceeded, runtime } = this.#options;
		const registered = () => view.deployments().get(uid)?.address ?? deployment.address;
		return createBalancedTransport({
			addresses: () => ({ running: running.of(uid).addresses, registered: registered() }),
			connect,
			onEndpoints: (value) => this.learnServers(uid, value),
			ownEndpoints: () => {
				const { own, ownServers } = this.#options;
				const { addresses, version } = ownServers();
				return encodeEndpoints(new Set([...addresses, own.announced]), version);
			},
			onDeleted: (deleted) => onDeleted(deleted, deployment),
			onSucceeded,
			clock: runtime.clock,
		});
	}

	/** A deployment names its running servers, by the value of `x-plinth-endpoints`. */
	learnServers(uid: string, endpoints: string): void {
		const { view, running, onServers } = this.#options;
		const registered = view.deployments().get(uid)?.address;
		if (registered === undefined) {
			return;
		}
		const addresses = decodeEndpoints(endpoints, registered);
		if (running.learn(uid, { addresses, version: versionOfEndpoints(endpoints) })) {
			onServers();
		}
	}

	/** Some server of this deployment has stored what it knows of another deployment: it may be the only one that was told. */
	followStored(entry: RegistryEntry): void {
		const { running, onOlderServers } = this.#options;
		const uid = entry.resource?.id?.uid ?? "";
		if (running.takeStored(uid, storedServers(entry))) {
			onOlderServers();
		}
	}

	/** The other servers of this deployment. */
	siblings(): readonly Sibling[] {
		const { connect, own, ownServers } = this.#options;
		return siblingsOf(own, ownServers().endpoints).map(({ address, announced }) => ({
			address,
			client: createClient(SchemaMixinService, connect(address, announced)),
		}));
	}

	/** Whether a server of this deployment runs at an address. */
	isRunningAt(address: string): boolean {
		return this.#options.ownServers().addresses.includes(address);
	}

	/** Removes the clients of deployments that are no longer known. */
	removeUnknown(): void {
		const { view, running } = this.#options;
		for (const uid of this.#clients.keys()) {
			if (!view.deployments().has(uid)) {
				this.#clients.delete(uid);
				running.forget(uid);
			}
		}
	}
}
