/**
 * The participants of a simulation, as they know each other. Types only, so that the files which implement
 * them do not import each other.
 */
import type { ServiceImpl, Transport } from "@connectrpc/connect";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { Runtime } from "@plinth/runtime";
import type { StorageBackend } from "@plinth/storage";
import type { DeploymentInfo, Environment } from "../environment.ts";
import type { SimulatedSchema } from "./schemas.fixture.ts";
import type { Lifetime } from "./server-lifetime.fixture.ts";

/** A service of a simulation. */
export interface SimulatedService {
	readonly name: string;
	readonly type: SimulatedSchema["type"];
	/** The initial schema, and those that the service may be switched to. */
	readonly schemas: readonly [SimulatedSchema, ...SimulatedSchema[]];
	/** The services whose deletions it follows. */
	readonly follows: readonly string[];
}

/** A server of a deployment, from its start to its crash. */
export interface SimulatedServer {
	readonly name: string;
	readonly lifetime: Lifetime;
	readonly runtime: Runtime;
	readonly deployment: SimulatedDeployment;
	readonly schema: SimulatedSchema;
	/** The storage as this server reaches it, without constraints. */
	readonly storage: StorageBackend;
	/** The storage with its constraints. */
	readonly store: StorageBackend;
	readonly service: ServiceImpl<typeof SchemaMixinService>;
	/** Whether its schema is active, so that it serves. */
	readonly isOpen: boolean;
	crash(): void;
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
	/** Stores the tenancy, and starts this many servers. */
	begin(servers: number): void;
	/** Starts a server. */
	start(): void;
	/** Stops a server abruptly. */
	crash(server: SimulatedServer): void;
	/** Gives servers that start from now on another schema. */
	switchTo(schema: SimulatedSchema): void;
}

/** A server of the meta deployment. */
export interface SimulatedMetaServer {
	readonly lifetime: Lifetime;
	readonly transport: Transport;
}

/** The deployment that keeps the registrations of all others. */
export interface SimulatedMetaDeployment {
	readonly name: string;
	readonly servers: readonly SimulatedMetaServer[];
	/** Starts a server. */
	start(): void;
	/** Stops a server abruptly. */
	crash(server: SimulatedMetaServer): void;
	/** Disables or enables a deployment, as an operator does. Does nothing if it is not registered. */
	disable(name: string, disabled: boolean): void;
}
