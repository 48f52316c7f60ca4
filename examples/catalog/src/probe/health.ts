import type { MessageInitShape } from "@bufbuild/protobuf";
import { Condition_State, type ConditionSchema, type Resource } from "@plinth/proto";
import { type Decoded, referenceTo } from "@plinth/resource";
import type { HealthCheckSchema, WorkloadSchema } from "../gen/catalog/v1/catalog_pb.ts";
import type { ProbeResult } from "./prober.ts";
import { addressOf, targetOf } from "./target.ts";

/** The name of the controller that probes, and of its entry in the status of a check. */
export const proberName = "catalog-prober";

const healthy = "Healthy";

/**
 * A result as a condition. It is about the workload, and its section is the address that was
 * probed: what was found there says nothing of a workload that has moved.
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

/** The condition of a check that has nothing to probe. */
export function unknownCondition(
	reason: string,
	message: string,
): MessageInitShape<typeof ConditionSchema> {
	return { type: healthy, state: Condition_State.UNKNOWN, reason, message };
}

/** Whether the check, as it is now, passed when it last probed the workload, as that is now. */
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
