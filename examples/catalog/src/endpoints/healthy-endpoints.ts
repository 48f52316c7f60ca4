import type { MessageInitShape } from "@bufbuild/protobuf";
import type { Reader } from "@plinth/cache";
import { type Decoded, isMarkedForDeletion, referenceTo } from "@plinth/resource";
import type {
	EndpointSchema,
	ServiceSchema,
	WorkloadSchema,
} from "../gen/catalog/v1/catalog_pb.ts";
import { checksByWorkload } from "../indexes.ts";
import { isPassing } from "../probe/health.ts";
import { portOf } from "../probe/target.ts";
import { Workload } from "../types/workload.ts";

/**
 * The addresses at which the service is offered, ordered by workload: of each healthy workload whose
 * name has the service's prefix, and that has its port.
 */
export function healthyEndpoints(
	cache: Reader,
	service: Decoded<typeof ServiceSchema>,
): MessageInitShape<typeof EndpointSchema>[] {
	const endpoints: MessageInitShape<typeof EndpointSchema>[] = [];
	const selected = cache.iterate(Workload, {
		tenancy: service.resource.id?.tenancy,
		namePrefix: service.data.workloadPrefix,
	});
	for (const workload of selected) {
		const port = portOf(workload.data, service.data.portName);
		const { id } = workload.resource;
		if (id !== undefined && port !== undefined && isHealthy(cache, workload)) {
			endpoints.push({ workload: referenceTo(id), host: workload.data.host, port });
		}
	}
	return endpoints;
}

/**
 * A workload is healthy when all the checks that it owns pass; one without checks counts as healthy,
 * and one that is being deleted does not.
 */
function isHealthy(cache: Reader, workload: Decoded<typeof WorkloadSchema>): boolean {
	const { id } = workload.resource;
	if (id === undefined || isMarkedForDeletion(workload.resource)) {
		return false;
	}
	return (
		cache
			.iterate(checksByWorkload, id)
			// Checks of an earlier workload of that name may not be gone yet.
			.filter((check) => check.resource.owner?.uid === id.uid)
			.every((check) => isPassing(check, workload))
	);
}
