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
 * The addresses of a service, ordered by workload: those of each healthy workload whose name has the prefix of the
 * service and that has its port.
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

/** Whether all checks of a workload pass. Without checks it is healthy; during its deletion it is not. */
function isHealthy(cache: Reader, workload: Decoded<typeof WorkloadSchema>): boolean {
	const { id } = workload.resource;
	if (id === undefined || isMarkedForDeletion(workload.resource)) {
		return false;
	}
	return (
		cache
			.iterate(checksByWorkload, id)
			// Ignores checks of an earlier workload with that name, which may not be deleted yet.
			.filter((check) => check.resource.owner?.uid === id.uid)
			.every((check) => isPassing(check, workload))
	);
}
