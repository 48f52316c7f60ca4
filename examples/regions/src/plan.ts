/** A server of the example. */
export interface PlannedServer {
	/** The name of its Deployment. */
	readonly name: string;
	/** Its own name, if it is one of several servers of the deployment. */
	readonly server?: string;
	readonly service: string;
	readonly region: string;
	/** The port of the public API. */
	readonly port: number;
	/** The port for other deployments. */
	readonly internalPort: number;
	/** The module file in this folder; absent for the meta service. */
	readonly module?: string;
}

const services = [
	{ service: "meta" },
	{ service: "iam", module: "src/iam/module.ts" },
	{ service: "devices", module: "src/devices/module.ts" },
] as const;

/** The initial regions. */
export const firstRegions = ["us-west2", "eu-north1"] as const;

/**
 * All servers: each service in each region. Those of the first region have the ports `basePort`,
 * `basePort + 1` and so on. Each further region adds ten, and internal listeners add a hundred.
 */
export function planOf(
	basePort: number,
	regions: readonly string[] = firstRegions,
): readonly PlannedServer[] {
	return regions.flatMap((region, r) =>
		services.map((each, s) => ({
			...each,
			name: `${each.service}-${region}`,
			region,
			port: basePort + 10 * r + s,
			internalPort: basePort + 100 + 10 * r + s,
		})),
	);
}
