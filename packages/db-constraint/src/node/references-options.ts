import type { Client, Transport } from "@connectrpc/connect";
import type { ControllerManagerOptions } from "@plinth/controller";
import type { ResourceService } from "@plinth/proto";
import type { CallerAuthenticator } from "@plinth/resource-service";
import type { LeaseManager, Logger, Runtime, SuspendableLeases } from "@plinth/runtime";
import type { StorageBackend, StorageIdentity } from "@plinth/storage";
import type { DeploymentConfiguration } from "../registry/deployment-configuration.ts";
import type { ServiceDescriptor } from "../schema/service-descriptor.ts";
import type { ConstraintLimits } from "./limits.ts";

/** The deployment of a server, among those of all services and regions. */
export interface DeploymentMembership
	extends Omit<DeploymentConfiguration, "version">,
		Partial<Pick<DeploymentConfiguration, "version">> {
	/** The addresses of meta deployments, in the order of preference for the registration. */
	readonly metaAddresses: readonly string[];
	/**
	 * Creates a transport to the internal listener of a deployment.
	 *
	 * @param announced - what the server at the address announces to other deployments, if it is of this deployment: its
	 *   certificate may be for that host name.
	 */
	readonly connect: (address: string, announced?: string) => Transport;
	/** The server's own resource service, with which a meta deployment registers itself. */
	readonly ownService: () => Client<typeof ResourceService>;
}

/** Options of `openReferences`. */
export interface ReferencesOptions {
	/** The storage, without references. */
	readonly backend: StorageBackend;
	/** The identity of the storage, if it has one. */
	readonly identity?: StorageIdentity | undefined;
	/** The types of the server and their references. */
	readonly descriptor: ServiceDescriptor;
	/** Omitted if there are no other deployments. */
	readonly deployment?: DeploymentMembership | undefined;
	/**
	 * Whether the server may start with types that lack versions which the deployment serves, and which other deployments
	 * reference. These can make no new references by them then. Default: it is refused.
	 */
	readonly dropsVersionsInUse?: boolean;
	/** Authenticates callers of other deployments. Default: all are accepted. */
	readonly callers?: CallerAuthenticator;
	/**
	 * Shared by the servers of the deployment; suspended while a schema other than this server's is active. Without
	 * them, other deployments know the registered address alone.
	 */
	readonly leases?: LeaseManager & Pick<SuspendableLeases, "suspend" | "resume">;
	/** Called when another schema becomes active, with what operators are told, and with nothing when it ends. */
	readonly onSuperseded?: (reason: string | undefined) => void;
	/** Called if the server must stop: its deployment was deleted, or the controllers failed. */
	readonly onFailure: (failure: unknown) => void;
	/** Default: the system runtime. */
	readonly runtime?: Runtime;
	/** Default: no logging. */
	readonly logger?: Logger;
	/** Overrides of `defaultConstraintLimits`. */
	readonly limits?: Partial<ConstraintLimits>;
}

/** Options of `References.control`. */
export interface ControlOptions
	extends Pick<ControllerManagerOptions, "client" | "cloningClient" | "events"> {
	/** Grants the lease of each shard of the controllers to one server of the deployment. */
	readonly leases: LeaseManager;
}
