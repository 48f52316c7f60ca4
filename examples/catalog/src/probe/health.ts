import type { MessageInitShape } from "@bufbuild/protobuf";
import { Condition_State, type ConditionSchema, type Resource } from "@plinth/proto";
import { type Decoded, referenceTo } from "@plinth/resource";
import type { HealthCheckSchema, WorkloadSchema } from "../gen/catalog/v1/catalog_pb.ts";
import type { ProbeResult } from "./prober.ts";
import { addressOf, targetOf } from "./target.ts";

/** The name of the probe controller, and of its entry in the status of a check. */
export const proberName = "catalog-prober";

const healthy = "Healthy";

/**
 * The condition for a result. It references the workload, with the probed address as the section: the result does
 * not apply to a workload whose address has changed since.
 */
export function healthCondition(
	workload: Resource,
	address: string,
	result: ProbeResult,
): MessageInitShape<typeof ConditionSchema> {
	return {
		type: healthy,
		state: result.passed ? Condition_State.TRUE : Condition_State.FALSE,
		reason: result.reason,
		message: result.message,
		...(workload.id && { resource: referenceTo(workload.id, address) }),
	};
}

/** The condition of a check without a target. */
export function unknownCondition(
	reason: string,
	message: string,
): MessageInitShape<typeof ConditionSchema> {
	return { type: healthy, state: Condition_State.UNKNOWN, reason, message };
}

/** Whether the last probe passed, with the current generation of the check and the current address. */
export function isPassing(
	check: Decoded<typeof HealthCheckSchema>,
	workload: Decoded<typeof WorkloadSchema>,
): boolean {
	const status = Object.hasOwn(check.resource.status, proberName)
		? check.resource.status[proberName]
		: undefined;
	const target = targetOf(check.data, workload.data);
	if (status?.observedGeneration !== check.resource.generation || target === undefined) {
		return false;
	}
	const condition = status.conditions.find(({ type }) => type === healthy);
	return (
		condition?.state === Condition_State.TRUE && condition.resource?.section === addressOf(target)
	);
}
