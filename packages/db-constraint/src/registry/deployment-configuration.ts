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
	/** Default: `<service>-<region>`. */
	readonly name?: string;
	/** The service's domain, for example `iam.example.com`. */
	readonly domain?: string;
}
