import type { EndpointAddresses } from "../shadow/endpoint-addresses.ts";

/** The configuration of a deployment. */
export interface DeploymentConfiguration {
	/** For example `iam`. */
	readonly service: string;
	/** For example `us-west2`. */
	readonly region: string;
	/** The version that is announced until an operator wants another one. */
	readonly version: string;
	/** Where other deployments reach the internal listener, for example `http://10.0.0.1:7576`. */
	readonly address: string;
	/**
	 * Where the other servers of the deployment reach the internal listener of this one, if several of them may have
	 * `address`, as behind a load balancer. Default: `address`.
	 */
	readonly directAddress?: string;
	/** Default: `<service>-<region>`. */
	readonly name?: string;
	/** The service's domain, for example `iam.example.com`. */
	readonly domain?: string;
}

/** Where the server with this configuration is reached. */
export function ownAddresses({
	address,
	directAddress = address,
}: Pick<DeploymentConfiguration, "address" | "directAddress">): EndpointAddresses {
	return { announced: address, direct: directAddress };
}
