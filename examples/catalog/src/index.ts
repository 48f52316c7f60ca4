export { createCatalogModule } from "./catalog-module.ts";
export {
	EndpointSchema,
	HealthCheckSchema,
	ServiceEndpointsSchema,
	ServiceSchema,
	WorkloadSchema,
} from "./gen/catalog/v1/catalog_pb.ts";
export { networkProber } from "./probe/network-prober.ts";
export type { ProbeResult, Prober } from "./probe/prober.ts";
export type { ProbeTarget } from "./probe/target.ts";
export { HealthCheck } from "./types/health-check.ts";
export { Service } from "./types/service.ts";
export { ServiceEndpoints } from "./types/service-endpoints.ts";
export { Workload } from "./types/workload.ts";
