import type { Client } from "@connectrpc/connect";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";

/** A deployment, as the registry describes it. */
export interface DeploymentInfo {
	/** Under which it registered; another registration has another uid. */
	readonly uid: string;
	/** As in `iam-us-west2`; empty where deployments are not known. */
	readonly name: string;
	readonly service: string;
	readonly region: string;
	/** The version of its API that it has announced. */
	readonly version: string;
	/** Whether nobody should talk to it. It is not deleted. */
	readonly disabled: boolean;
	/** The uid of the deployment whose resources it has taken over; empty for none. */
	readonly predecessorUid: string;
	/** `false` while it has not established, under its own uid, what its predecessor referenced. */
	readonly established?: boolean;
}

/**
 * Who this deployment is, and which others there are. What it says of others may be old: absence
 * never means deletion.
 */
export interface Environment {
	/** This deployment. Its version changes when another one is announced. */
	readonly self: DeploymentInfo;
	/**
	 * Whether everybody who keeps registrations has been heard since the start; yes where it is absent. Where
	 * not, a deployment that is not known may be there all the same.
	 */
	readonly isComplete?: boolean;
	/** All deployments that are known, this one included. */
	deployments(): readonly DeploymentInfo[];
	/** The deployment of a service in a region that is in charge now, or `undefined`. */
	find(service: string, region: string): DeploymentInfo | undefined;
	/**
	 * The deployment that keeps resources of a group in a region, for owners, whose services need not be
	 * imported.
	 *
	 * @param service - where the descriptor knows it: empty is the own one.
	 */
	findOwner(group: string, service: string | undefined, region: string): DeploymentInfo | undefined;
	/**
	 * The client of a deployment's mixin service.
	 *
	 * @throws ConnectError Unavailable where the deployment is not known, or disabled.
	 */
	client(uid: string): Client<typeof SchemaMixinService>;
	/**
	 * Whether the deployment of that uid has been deleted for good, by the record of the meta
	 * deployment that keeps it, read strongly.
	 *
	 * Answers within seconds.
	 *
	 * @throws ConnectError where that can't be found out now.
	 */
	isDeleted(uid: string): Promise<boolean>;
	/** Calls the listener after each change, until what is returned is called. */
	onChange(listener: () => void): () => void;
}
