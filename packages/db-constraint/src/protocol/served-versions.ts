import { Code } from "@connectrpc/connect";
import { gvkKey } from "@plinth/resource";
import { Refused } from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { deployedOf, displayDeployed } from "../shadow/shadow.ts";

/** A target, and the version of its type that the referencing service was built with. */
export interface VersionedTarget {
	readonly key?: { readonly group: string; readonly kind: string } | undefined;
	/** Empty if it is not known. */
	readonly groupVersion: string;
}

/**
 * Refuses targets in versions that this deployment does not serve. This is for references that users make: what other
 * deployments establish by themselves is accepted in all versions, since those references exist already, and their
 * targets must know of them.
 *
 * @param servedTypes - the types that the active schema serves, as in `iam.v1.Project`.
 * @throws Refused FailedPrecondition, which names the versions that are served.
 */
export function assertServed(
	{ environment }: Pick<ConstraintContext, "environment">,
	servedTypes: readonly string[],
	targets: readonly VersionedTarget[],
): void {
	for (const { key, groupVersion } of targets) {
		const type = key === undefined || groupVersion === "" ? "" : gvkKey({ ...key, groupVersion });
		if (key !== undefined && type !== "" && !servedTypes.includes(type)) {
			const served = versionsOf(servedTypes, key);
			const only = served.length === 0 ? "" : `, only ${served.join(", ")}`;
			const where = displayDeployed(deployedOf(environment.self));
			throw new Refused(Code.FailedPrecondition, `${where} does not serve ${type}${only}`);
		}
	}
}

/** The types of targets, as in `iam.v1.Project`, as far as their versions are known. */
export function typesOf(targets: readonly VersionedTarget[]): readonly string[] {
	return targets.flatMap(({ key, groupVersion }) =>
		key === undefined || groupVersion === "" ? [] : [gvkKey({ ...key, groupVersion })],
	);
}

function versionsOf(
	servedTypes: readonly string[],
	{ group, kind }: { readonly group: string; readonly kind: string },
): readonly string[] {
	return servedTypes.flatMap((type) => {
		const [version = "", ...rest] = type.slice(group.length + 1).split(".");
		return type.startsWith(`${group}.`) && rest.join(".") === kind ? [version] : [];
	});
}
