import { Code } from "@connectrpc/connect";
import type { Caller } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { Refused } from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { deployedOf, displayDeployed } from "../shadow/shadow.ts";

/** A target, and the version of its type that the referencing service was built with. */
interface VersionedTarget {
	readonly key?: { readonly group: string; readonly kind: string } | undefined;
	/** Empty if it is not known. */
	readonly groupVersion: string;
}

/**
 * Refuses users who name targets in versions that this deployment does not serve. What other deployments establish by
 * themselves is accepted in all versions: these references exist already, and their targets must know of them.
 *
 * @throws Refused FailedPrecondition, which names the versions that are served.
 */
export function assertServed(
	{ descriptor, environment }: Pick<ConstraintContext, "descriptor" | "environment">,
	caller: Caller | undefined,
	targets: readonly VersionedTarget[],
): void {
	if (caller?.caller.case !== "user") {
		return;
	}
	for (const { key, groupVersion } of targets) {
		const served = key === undefined ? [] : descriptor.versionsOf(key);
		if (key !== undefined && groupVersion !== "" && served.length > 0) {
			if (!served.includes(groupVersion)) {
				const where = displayDeployed(deployedOf(environment.self));
				throw new Refused(
					Code.FailedPrecondition,
					`${where} does not serve ${key.group}.${groupVersion}.${key.kind}, only ${served.join(", ")}`,
				);
			}
		}
	}
}
