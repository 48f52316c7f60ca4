/**
 * Decisions on what callers name: the targets of references, and owners. Each is decided by its name before
 * anything is read, so that a refusal does not depend on whether there is a target. Only where a type's
 * hook must see the resource, what is stored decides, as it does for a Read.
 */
import { Code } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import type { Caller, Decision, NamedTarget, TenancyLike } from "@plinth/resource";
import { denialOf, isElsewhere } from "@plinth/resource";
import { Refused } from "@plinth/storage";
import { type KeyLike, keyString } from "./resource-key.ts";

/** A target as a resource of that tenancy names it. */
export function namedTarget(
	key: KeyLike,
	groupVersion: string,
	from: TenancyLike | { readonly isElsewhere: boolean },
): NamedTarget {
	const { group, kind, partition, namespace, name } = key;
	return {
		type: { group, groupVersion, kind },
		tenancy: { partition, namespace },
		name,
		isElsewhere: "isElsewhere" in from ? from.isElsewhere : isElsewhere(key, from),
	};
}

/**
 * Passes what is allowed, and what takes a look at the target.
 *
 * @throws Refused PermissionDenied with the authorizer's message, as a Read is refused.
 */
export function enforce(decision: Decision): void {
	const denial = denialOf(decision);
	if (denial !== undefined) {
		throw new Refused(Code.PermissionDenied, denial);
	}
}

/** Decides with what is stored, where the name was not enough. @throws Refused PermissionDenied. */
export type DecideWithStored = (key: KeyLike, stored: Resource) => void;

/**
 * Decides by their names whether a caller may name all targets.
 *
 * @param caller - absent: the deployment itself, which may.
 * @returns decides, where names were not enough, with what is stored.
 * @throws Refused PermissionDenied where the caller may not name one.
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
		const target = namedTarget(key, groupVersion, { isElsewhere: elsewhere });
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

/** A target as another deployment sends it. */
interface SentTarget {
	readonly key?: KeyLike | undefined;
	readonly groupVersion: string;
	readonly elsewhere: boolean;
}
