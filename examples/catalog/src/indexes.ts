import { defineIndex, ownerIndex, type ReferenceLike } from "@plinth/cache";
import { HealthCheck } from "./types/health-check.ts";
import { Service } from "./types/service.ts";

/** Checks by the workload that owns them. */
export const checksByWorkload = ownerIndex("workload", HealthCheck);

/**
 * Services by their prefix, with one letter per segment. A service selects a workload if its key is a prefix of the
 * workload's key:
 *
 * ```
 * service "web-"      default / default / w / e / b / -
 * workload "web-1"    default / default / w / e / b / - / 1
 * ```
 */
export const servicesByWorkload = defineIndex("workload-prefix", Service, {
	keys: ({ resource, data }) => [letters(resource.id?.tenancy, data.workloadPrefix)],
	key: (workload: ReferenceLike) => letters(workload.tenancy, workload.name ?? ""),
});

function letters(tenancy: ReferenceLike["tenancy"], name: string): readonly string[] {
	return [tenancy?.partition ?? "", tenancy?.namespace ?? "", ...name];
}
