/**
 * The participants of a simulation, as they know each other. Types only, so that the files which implement
 * them do not import each other.
 */
import type { ServiceImpl, Transport } from "@connectrpc/connect";
import type { ReferenceService } from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import type { ReferenceServiceOptions } from "../plan/reference-service.ts";
import type { DeploymentInfo, Environment } from "../registry/environment.ts";
import type { SimulatedSchema, VersionedSchemas } from "./schemas.fixture.ts";
import type { Lifetime } from "./server-lifetime.fixture.ts";

/** A service of a simulation. */
export interface SimulatedService {
	readonly name: string;
	readonly type: SimulatedSchema["type"];
	/** The initial schema, and those that the service may be switched to. */
	readonly schemas: readonly [SimulatedSchema, ...SimulatedSchema[]];
	/** Those of runs in which versions differ by region. `v1` is the initial schema. */
	readonly versions: VersionedSchemas;
}

/** A process of a server, from its start to its crash, as the network knows it. */
export interface SimulatedProcess {
	/** The name of its deployment. */
	readonly name: string;
	/** Where it listens. A later process, of any deployment, may have the same address. */
	readonly address: string;
	readonly lifetime: Lifetime;
	readonly runtime: Runtime;
	/** What it serves to other deployments; `undefined` before it listens. */
	readonly transport: Transport | undefined;
}

/** A server of a deployment, from its start to its crash. */
export interface SimulatedServer extends SimulatedProcess {
	readonly deployment: SimulatedDeployment;
	readonly schema: SimulatedSchema;
	/** The storage as this server reaches it, without constraints. */
	readonly storage: StorageBackend;
	/** The storage with its constraints. */
	readonly store: StorageBackend;
	/** Whether it serves its users. */
	readonly isOpen: boolean;
	/** What it tells users about references. */
	referenceService(options: ReferenceServiceOptions): ServiceImpl<typeof ReferenceService>;
	/** Does nothing for a while. */
	stall(ms: number): void;
	/** Stops in order, as long as the storage responds. */
	stop(): Promise<void>;
	crash(): void;
}

/** The uids that a registry view has. */
export interface KnownDeployments {
	readonly stored: ReadonlySet<string>;
	/** Those of the deployments of whose deletion it has the record. */
	readonly deleted: ReadonlySet<string>;
}

/** A service in a region: a storage that persists, and servers that start and crash. */
export interface SimulatedDeployment {
	/** The uid is empty until the deployment has registered. */
	readonly info: DeploymentInfo;
	readonly service: SimulatedService;
	/** The schema of servers that start from now on. */
	readonly schema: SimulatedSchema;
	/** Its identity as the observer knows it. No server uses it. */
	readonly environment: Environment;
	readonly servers: readonly SimulatedServer[];
	/** What is in the registry view in its storage. */
	knownDeployments(): KnownDeployments;
	/** What all its servers announce: that of a load balancer. `undefined`: each announces where it listens. */
	readonly sharedAddress: string | undefined;
	/** Where its servers listen, as its storage records it. */
	endpoints(): readonly string[];
	/** Stores the tenancy, and starts this many servers. */
	begin(servers: number): void;
	/** Starts a server. */
	start(): void;
	/** Stops a server abruptly. */
	crash(server: SimulatedServer): void;
	/**
	 * Gives servers that start from now on another schema.
	 *
	 * @param force - whether they may drop versions that others reference. Default: then they do not start, and `refused`
	 *   is called.
	 */
	switchTo(schema: SimulatedSchema, force?: boolean): void;
	/**
	 * A server did not start, since its schema lacks a version in use: the next ones have the schema of before, and replace
	 * those that have started with this one.
	 */
	refused(): void;
	/** Whether servers that start from now on may drop versions that others reference. */
	readonly isForced: boolean;
	/** Whether servers ever could. */
	readonly wasForced: boolean;
	/** Crashes all servers. None starts until `resume`. */
	halt(): void;
	/** Starts the servers that `halt` has crashed, and those that were to start since. */
	resume(): void;
	/** Makes a backup of the storage. The returned function restores it: call that while the deployment is halted. */
	backUp(): () => void;
	/** Has no servers from now on, and its storage is lost. Its Deployment must have been deleted. */
	abandon(): void;
	/** Whether it is abandoned. */
	readonly isGone: boolean;
}

/** A server of the meta deployment, from its start to its crash. */
export interface SimulatedMetaServer extends SimulatedProcess {
	/** Does nothing for a while. */
	stall(ms: number): void;
	/** Stops in order, as long as the storage responds. */
	stop(): Promise<void>;
	crash(): void;
}

/** The deployment that keeps the registrations of all others. */
export interface SimulatedMetaDeployment {
	readonly name: string;
	/** The addresses of its servers, by which all others know it. */
	readonly addresses: readonly string[];
	readonly servers: readonly SimulatedMetaServer[];
	/** Starts a server. */
	start(): void;
	/** Stops a server abruptly. */
	crash(server: SimulatedMetaServer): void;
	/** The registered address of a deployment; `undefined` if it is not registered. */
	addressOf(name: string): string | undefined;
	/** Disables or enables a deployment, as an operator does. Returns whether it did. */
	disable(name: string, disabled: boolean): Promise<boolean>;
	/** The names of the deployments that are disabled. */
	disabled(): readonly string[];
	/** The name under which a uid is or was registered; `undefined` if it never was. */
	nameOf(uid: string): string | undefined;
	/** The uids of the other deployments that are registered now, without those that have no servers any longer. */
	registered(): readonly string[];
	/** Deletes a Deployment, as an operator does. Returns whether it did. */
	delete(uid: string): Promise<boolean>;
	/** Resolves once its storage has its own registration: only then does it notice a restore. */
	readonly whenRegistered: Promise<void>;
	/** Crashes all servers. None starts until `resume`. */
	halt(): void;
	/** Starts the servers that `halt` has crashed, and those that were to start since. */
	resume(): void;
	/** Makes a backup of the storage. The returned function restores it: call that while the deployment is halted. */
	backUp(): () => void;
	/** The storage of another deployment was restored, whose registry view has only this now. */
	otherRestored(known: KnownDeployments): void;
	/** A restore has replaced the storage of another deployment, which had this incarnation. */
	storageReplaced(incarnation: string): void;
	/**
	 * Receives the message again that has registered a uid, and registers another one if the name is free. Returns whether it
	 * has handled the message.
	 */
	registerAgain(uid: string): Promise<boolean>;
	/** A description of what should have settled, or `undefined`. */
	problem(): string | undefined;
}
