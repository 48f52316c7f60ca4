/** A server of the example. */
export interface PlannedServer {
	/** As its Deployment is named. */
	readonly name: string;
	readonly service: string;
	readonly region: string;
	/** Where people call it. */
	readonly port: number;
	/** Where the other deployments call it. */
	readonly internalPort: number;
	/** The file of its types, within this folder; the meta service needs none. */
	readonly module?: string;
}

const services = [
	{ service: "meta" },
	{ service: "iam", module: "src/iam/module.ts" },
	{ service: "devices", module: "src/devices/module.ts" },
] as const;

/** The regions at first. */
export const firstRegions = ["us-west2", "eu-north1"] as const;

/**
 * All servers: each service in each region. Those of the first region have the ports `basePort`,
 * `basePort + 1` and so on, those of the next one ten more; internal listeners a hundred more.
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
