import type { MessageInitShape } from "@bufbuild/protobuf";
import {
	type Condition,
	Condition_State,
	type ConditionSchema,
	type Resource,
} from "@plinth/proto";
import { type CountedTypes, describeCounts, describeTypes } from "./counted-types.ts";

/** The reason of a condition: resources are left whose types the server does not register. */
export const unregisteredTypes = "UnregisteredTypes";

/** The reason of a condition: resources are left, all of registered types. */
export const resourcesLeft = "ResourcesLeft";

/**
 * A condition that is false because resources are left: how many of each type, and, where this server
 * does not register some of the types, which ones and what to do about it.
 */
export function leftCondition(
	type: string,
	left: CountedTypes,
	unregistered: CountedTypes,
): MessageInitShape<typeof ConditionSchema> {
	const counts = `still there: ${describeCounts(left)}`;
	return unregistered.size === 0
		? { type, state: Condition_State.FALSE, reason: resourcesLeft, message: counts }
		: {
				type,
				state: Condition_State.FALSE,
				reason: unregisteredTypes,
				message: `${counts}. No module of this server registers ${describeTypes(unregistered)}. A server that registers a type deletes its resources: start one with the module, or restart this one with it`,
			};
}

/** Whether that status of the resource says that it waits for a server that registers more types. */
export function waitsForTypes(resource: Resource, statusKey: string): boolean {
	const status = Object.hasOwn(resource.status, statusKey) ? resource.status[statusKey] : undefined;
	const isWaiting = ({ state, reason }: Condition) =>
		state === Condition_State.FALSE && reason === unregisteredTypes;
	return status?.conditions.some(isWaiting) ?? false;
}
