import type { ListenAddress } from "../configuration/listen-address.ts";

/** The deployment that a server is, among those of all services and regions. */
export interface DeploymentOptions {
	/** The name of its service, such as `iam`. */
	readonly service: string;
	/** Such as `us-west2`. */
	readonly region: string;
	/** The API version that it announces at first; by default, the newest version of its modules. */
	readonly version?: string;
	/**
	 * Whether it may lack versions of types that it has served, and that other deployments reference. Default: then the
	 * start is refused, and nothing changes.
	 */
	readonly dropsVersionsInUse?: boolean;
	/** The URL under which other deployments reach the internal listener, such as `http://10.0.0.1:7576`. */
	readonly address: string;
	/** The addresses of meta deployments. A meta deployment may omit itself. */
	readonly metaAddresses: readonly string[];
	/** The address on which it listens for other deployments. */
	readonly internalListen: ListenAddress;
	/**
	 * The file with the credential that all deployments share: one per line. The first is sent and all are
	 * accepted, so that it can be changed while all deployments run. Read again when it changes.
	 */
	readonly credentialFile: string;
}
