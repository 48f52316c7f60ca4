/**
 * Authorizes callers to name targets of references and owners. Each is decided by its name before anything
 * is read, so that a refusal does not reveal whether the target exists. Only if a hook of the type needs the
 * resource does the stored resource decide, as for a Read.
 */
import { Code } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import type { Caller, Decision, NamedTarget, TenancyLike } from "@plinth/resource";
import { denialOf, isCrossTenancy } from "@plinth/resource";
import { Refused } from "@plinth/storage";
import { type KeyLike, keyString } from "../shadow/resource-key.ts";

/** The target as seen from a resource in the given tenancy. */
export function namedTarget(
	key: KeyLike,
	groupVersion: string,
	from: TenancyLike | { readonly isCrossTenancy: boolean },
): NamedTarget {
	const { group, kind, partition, namespace, name } = key;
	return {
		type: { group, groupVersion, kind },
		tenancy: { partition, namespace },
		name,
		isCrossTenancy: "isCrossTenancy" in from ? from.isCrossTenancy : isCrossTenancy(key, from),
	};
}

/**
 * Throws if the decision is a denial. Decisions that need the resource pass.
 *
 * @throws Refused PermissionDenied with the authorizer's message, as for a Read.
 */
export function enforce(decision: Decision): void {
	const denial = denialOf(decision);
	if (denial !== undefined) {
		throw new Refused(Code.PermissionDenied, denial);
	}
}

/** Decides by the stored resource if the name was not sufficient. @throws Refused PermissionDenied. */
export type DecideWithStored = (key: KeyLike, stored: Resource) => void;

/**
 * Decides by their names whether a caller may name all targets.
 *
 * @param caller - `undefined`: the deployment itself, which may name all.
 * @returns a function that decides by the stored resource if the name was not sufficient.
 * @throws Refused PermissionDenied if the caller may not name a target.
 */
export function decideTargets(
	caller: Caller | undefined,
	targets: readonly SentTarget[],
): DecideWithStored {
	const undecided = new Map<string, NamedTarget>();
	for (const { key, groupVersion, elsewhere } of targets) {
		if (caller === undefined || key === undefined) {
			continue;
		}
		const target = namedTarget(key, groupVersion, { isCrossTenancy: elsewhere });
		const decision = caller.decideReference(target);
		enforce(decision);
		if (decision.kind === "needs-resource") {
			undecided.set(keyString(key), target);
		}
	}
	return (key, stored) => {
		const target = undecided.get(keyString(key));
		if (caller !== undefined && target !== undefined) {
			enforce(caller.decideReference(target, stored));
		}
	};
}

/** A target in a request of another deployment. */
interface SentTarget {
	readonly key?: KeyLike | undefined;
	readonly groupVersion: string;
	readonly elsewhere: boolean;
}
