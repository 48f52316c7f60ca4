import { Code, ConnectError } from "@connectrpc/connect";
import { type Access, operatorRead, type ResourceType } from "@plinth/resource";
import { allowsEverywhere, type Policy, policyOf } from "./policy-authorizer.ts";

/**
 * The header of a watch that is refused unless it shows all resources of its type, now and later. A cache for other callers
 * needs that from each server by itself: not all of them have the same rights and types at the same time.
 */
export const wholeTypeHeader = "x-plinth-whole-type";

/**
 * Checks that the caller is shown all resources of a type, whatever their tenancies, names and data.
 *
 * @throws ConnectError FailedPrecondition if hooks of the type, or an authorizer without policies, decide about each of them;
 *   PermissionDenied if the caller lacks rights.
 */
export function requireWholeType({ type, key, hooks }: ResourceType, access: Access): void {
	const { read, list } = hooks.authorize ?? {};
	if (read !== undefined || list !== undefined) {
		throw new ConnectError(
			`hooks of resource type ${key} decide who may read it: agents can't`,
			Code.FailedPrecondition,
		);
	}
	if (!allowsEverywhere(describedPolicy(access), operatorRead, type)) {
		throw new ConnectError(
			`${access.subject} lacks ${operatorRead} on all resources of ${key}: a cache needs a rule without partition, namespace and namePrefix`,
			Code.PermissionDenied,
		);
	}
}

/**
 * The policy that says all of what an access allows.
 *
 * @throws ConnectError FailedPrecondition if none does.
 */
export function describedPolicy(access: Access): Policy {
	const policy = policyOf(access);
	if (policy === undefined) {
		throw new ConnectError(
			"this server decides about rights by an authorizer of its own: agents can't",
			Code.FailedPrecondition,
		);
	}
	return policy;
}
