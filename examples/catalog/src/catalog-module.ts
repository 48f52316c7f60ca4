import { defineModule, type Module } from "@plinth/server/module";
import { endpointsController } from "./endpoints/endpoints-controller.ts";
import { createProbeController } from "./probe/probe-controller.ts";
import type { Prober } from "./probe/prober.ts";
import { HealthCheck } from "./types/health-check.ts";
import { Service } from "./types/service.ts";
import { ServiceEndpoints } from "./types/service-endpoints.ts";
import { Workload } from "./types/workload.ts";

/** Creates the catalog module. Its checks use the given prober. */
export function createCatalogModule(prober: Prober): Module {
	return defineModule({
		name: "catalog",
		types: [Service, Workload, HealthCheck, ServiceEndpoints],
		controllers: [createProbeController(prober), endpointsController],
	});
}
