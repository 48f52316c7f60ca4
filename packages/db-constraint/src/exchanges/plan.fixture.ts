import type { HandlerContext } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import type { LabDeployment } from "../lab/lab.fixture.ts";
import { createReferenceService } from "../plan/reference-service.ts";

/** Plans the deletion of a resource: this describes its holders in all deployments. */
export async function planDeletion({ current, lab }: LabDeployment, resource: Resource) {
	const service = createReferenceService(current.constraints.context, {
		read: async () => resource,
		callerOf: async () => undefined,
	});
	const request = { $typeName: "plinth.schema.v1.PlanDeletionRequest" } as const;
	const call = { signal: new AbortController().signal } as HandlerContext;
	return lab.run(Promise.resolve(service.planDeletion(request, call)));
}
