import type { ListenAddress } from "../configuration/listen-address.ts";

/** Which deployment a server is, among those of all services and regions. */
export interface DeploymentOptions {
	/** The name of its service, as `iam`. */
	readonly service: string;
	/** As `us-west2`. */
	readonly region: string;
	/** The version of the API that it announces at first; the newest of its modules where it is absent. */
	readonly version?: string;
	/** Where the other deployments reach the internal listener, as `http://10.0.0.1:7576`. */
	readonly address: string;
	/** The addresses of meta deployments. A meta deployment may leave itself out. */
	readonly metaAddresses: readonly string[];
	/** Where it listens for the other deployments. */
	readonly internalListen: ListenAddress;
	/**
	 * The file with the credential that all deployments share: one a line. The first is sent, all are
	 * taken, so that it can be changed while all of them run. Read again when it changes.
	 */
	readonly credentialFile: string;
}
