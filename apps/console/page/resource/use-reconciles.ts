import type { Resource } from "@plinth/proto";
import { ControllerService } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { useDetail } from "./use-detail.ts";

/** What each controller that manages a resource does with it. */
export function useReconciles(resource: Resource) {
	return useDetail("reconciles", resource, async (connection, id, signal) => {
		const client = connection.client(ControllerService);
		return (await client.listReconciles({ id }, { signal })).reconciles;
	});
}
