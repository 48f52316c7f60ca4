import type { MessageInitShape } from "@bufbuild/protobuf";
import {
	type Condition,
	Condition_State,
	type ConditionSchema,
	type Resource,
} from "@plinth/proto";
import { type CountedTypes, describeCounts, describeTypes } from "./counted-types.ts";

/** The reason of a condition: resources of unregistered types are left. */
export const unregisteredTypesReason = "UnregisteredTypes";

/** The reason of a condition: only resources of registered types are left. */
export const resourcesLeftReason = "ResourcesLeft";

/**
 * A false condition with the number of resources left of each type. If this server does not register some of
 * the types, it names them and what to do.
 */
export function resourcesLeftCondition(
	type: string,
	left: CountedTypes,
	unregistered: CountedTypes,
): MessageInitShape<typeof ConditionSchema> {
	const counts = `still there: ${describeCounts(left)}`;
	return unregistered.size === 0
		? { type, state: Condition_State.FALSE, reason: resourcesLeftReason, message: counts }
		: {
				type,
				state: Condition_State.FALSE,
				reason: unregisteredTypesReason,
				message: `${counts}. No module of this server registers ${describeTypes(unregistered)}. A server that registers a type deletes its resources: start one with the module, or restart this one with it`,
			};
}

/** Whether the resource waits, according to one of its statuses, for a server that registers more types. */
export function waitsForTypes(resource: Resource, statusKey: string): boolean {
	const status = Object.hasOwn(resource.status, statusKey) ? resource.status[statusKey] : undefined;
	const isWaiting = ({ state, reason }: Condition) =>
		state === Condition_State.FALSE && reason === unregisteredTypesReason;
	return status?.conditions.some(isWaiting) ?? false;
}
