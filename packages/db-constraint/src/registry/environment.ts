import type { Client } from "@connectrpc/connect";
import type { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";

/** A deployment, as the registry describes it. */
export interface DeploymentInfo {
	/** The uid of its registration. A new registration has a new uid. */
	readonly uid: string;
	/** For example `iam-us-west2`; empty without discovery. */
	readonly name: string;
	readonly service: string;
	readonly region: string;
	/** The version of its API that it has announced. */
	readonly version: string;
	/** Whether other deployments must not call it. It is not deleted. */
	readonly disabled: boolean;
	/** The uid of the deployment whose resources it has taken over; empty if none. */
	readonly predecessorUid: string;
	/** The uids of further deployments that it has taken over. Default: none. */
	readonly otherPredecessorUids?: readonly string[];
	/** `false` until it has established the references of its predecessor under its own uid. */
	readonly established?: boolean;
	/** Whether it is a meta deployment that was restored, and lacks registrations and deletions since the backup. Default: no. */
	readonly recovering?: boolean;
}

/** Another server of this deployment. */
export interface Sibling {
	/** Where this server calls it. */
	readonly address: string;
	readonly client: Client<typeof SchemaMixinService>;
}

/** The uids of all deployments that it has taken over directly. */
export function takenOver({
	predecessorUid,
	otherPredecessorUids = [],
}: DeploymentInfo): readonly string[] {
	return predecessorUid === "" ? otherPredecessorUids : [predecessorUid, ...otherPredecessorUids];
}

/**
 * Which of two deployments with the same predecessor is its successor: the one that has taken over the other. If two
 * restores of a backup have registered at the same time, neither has: then the one with the greater uid, everywhere.
 */
export function laterOf<T extends DeploymentInfo>(one: T, other: T): T {
	const isLater = takenOver(one).includes(other.uid);
	const isEarlier = takenOver(other).includes(one.uid);
	return (isLater === isEarlier ? one.uid > other.uid : isLater) ? one : other;
}

/**
 * The identity of this deployment, and the known other deployments. Information about others may be stale:
 * absence never means deletion.
 */
export interface Environment {
	/** This deployment. Its version changes when another one is announced. */
	readonly self: DeploymentInfo;
	/**
	 * Whether all meta deployments have been read since the start; by a successor, since it has registered. Default: yes.
	 * If not, a deployment that is not known may exist.
	 */
	readonly isComplete?: boolean;
	/** All known deployments, including this one. */
	deployments(): readonly DeploymentInfo[];
	/** The deployment with this uid, if it is known. */
	byUid(uid: string): DeploymentInfo | undefined;
	/** The known deployment that has taken over from the one with this uid. */
	successorOf(uid: string): DeploymentInfo | undefined;
	/** The deployment that is responsible for a service in a region, or `undefined`. */
	find(service: string, region: string): DeploymentInfo | undefined;
	/**
	 * The deployment that stores the resources of a group in a region. For owners, whose services need not be
	 * imported.
	 *
	 * @param service - if the descriptor knows it; empty for the service of this deployment.
	 */
	findOwner(group: string, service: string | undefined, region: string): DeploymentInfo | undefined;
	/**
	 * The client of a deployment's mixin service.
	 *
	 * @throws ConnectError Unavailable if the deployment is not known, or is disabled.
	 */
	client(uid: string): Client<typeof SchemaMixinService>;
	/**
	 * Whether the announced version of a deployment, by its uid, imports a service. `undefined` if that is not known.
	 * Default: it never is.
	 */
	imports?(uid: string, service: string): boolean | undefined;
	/** A deployment names its running servers, by the value of `x-plinth-endpoints`. Default: they are not kept. */
	learnServers?(uid: string, endpoints: string): void;
	/** The other servers of this deployment. Default: there are none. */
	siblings?(): readonly Sibling[];
	/**
	 * Whether the deployment with this uid has been deleted, by the permanent record at the meta deployment
	 * that keeps it, read strongly. Returns within seconds.
	 *
	 * @throws ConnectError if that can't be determined now.
	 */
	isDeleted(uid: string): Promise<boolean>;
	/** Calls the listener after each change, until the returned function is called. */
	onChange(listener: () => void): () => void;
}
