import type { Transport } from "@connectrpc/connect";

/** The deployment that a server is. */
export interface OwnRegion {
	readonly service: string;
	readonly region: string;
	/** The uid of the deployment; `undefined` if it has none yet. @throws StorageUnavailable. */
	readonly uid: () => Promise<string | undefined>;
}

/** A deployment of the same service in another region. */
export interface OtherRegion {
	readonly region: string;
	/** The uid of the deployment. */
	readonly uid: string;
	/** The addresses of its servers that are known; at least one. */
	readonly addresses: readonly string[];
}

/** Finds the deployments of the same service. What it does not find proves nothing. */
export interface Regions {
	/** Those that may be called: one in each other region. @throws StorageUnavailable. */
	others(): Promise<readonly OtherRegion[]>;
	/** Whether there is the permanent record that a deployment was deleted. @throws StorageUnavailable. */
	isDeleted(uid: string): Promise<boolean>;
	/** A transport to the internal listener of a server, with the credential of deployments. */
	readonly connect: (address: string) => Transport;
}
