import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	type Deployed,
	DeployedSchema,
	Lifecycle,
	type OutgoingReference,
	type Ownees,
	type ResourceKey,
	type Shadow,
	ShadowSchema,
	type Source,
	SourceSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { DeploymentInfo } from "../registry/environment.ts";
import { hashOf, type KeyLike, localKeyString } from "./resource-key.ts";

/** The finalizer of a resource that is being deleted while holders may reference it. */
export const referencesFinalizer = "schema.plinth.dev/references";

/** The name of the shadow of a resource, in its own deployment. */
export function shadowName(key: KeyLike): string {
	return `s-${hashOf(localKeyString(key)).slice(0, 40)}`;
}

/** A shadow that records nothing yet. */
export function newShadow(resource: ResourceKey, uid: string): Shadow {
	return create(ShadowSchema, { resource, uid, lifecycle: Lifecycle.ACTIVE });
}

/** Whether there is nothing to record. */
export function isEmpty(shadow: Shadow): boolean {
	return (
		shadow.lifecycle === Lifecycle.ACTIVE &&
		shadow.outgoing.length === 0 &&
		shadow.sources.length === 0 &&
		shadow.metaOwners.length === 0 &&
		shadow.ownees.length === 0 &&
		shadow.tasks.length === 0
	);
}

/** Whether some deployment references the resource or has ownees of it, or may. */
export function isHeld(shadow: Shadow): boolean {
	return shadow.sources.length > 0 || shadow.ownees.length > 0;
}

/** The deployment for shadows and routes. */
export function deployedOf(info: DeploymentInfo): Deployed {
	const { uid, service, region, version } = info;
	return create(DeployedSchema, { uid, service, region, version });
}

/** The deployment for messages. */
export function displayDeployed(deployed: Deployed | undefined): string {
	if (deployed === undefined || deployed.service === "") {
		return "this deployment";
	}
	return deployed.region ? `${deployed.service} in ${deployed.region}` : deployed.service;
}

/** The source of a deployment. */
export function sourceOf(shadow: Shadow, uid: string): Source | undefined {
	return shadow.sources.find(({ deployment }) => deployment?.uid === uid);
}

/** The shadow with a source, in place of the one of the same deployment. */
export function withSource(shadow: Shadow, init: MessageInitShape<typeof SourceSchema>): Shadow {
	const source = create(SourceSchema, init);
	const uid = source.deployment?.uid;
	const others = shadow.sources.filter(({ deployment }) => deployment?.uid !== uid);
	return { ...shadow, sources: [...others, source] };
}

/** The shadow without the source and the ownees of a deployment. */
export function withoutDeployment(shadow: Shadow, uid: string): Shadow {
	const isOther = ({ deployment }: Source | Ownees) => deployment?.uid !== uid;
	return {
		...shadow,
		sources: shadow.sources.filter(isOther),
		ownees: shadow.ownees.filter(isOther),
	};
}

/** All deployments that hold the resource, each once. */
export function holders(shadow: Shadow): readonly Deployed[] {
	const byUid = new Map<string, Deployed>();
	for (const { deployment } of [...shadow.sources, ...shadow.ownees]) {
		if (deployment !== undefined) {
			byUid.set(deployment.uid, deployment);
		}
	}
	return [...byUid.values()];
}

/** Rules, each once, the strictest first: BLOCK, CASCADE, UNSET. */
export function mergeRules(...rules: readonly (readonly OnDelete[])[]): OnDelete[] {
	return [...new Set(rules.flat())].sort((a, b) => a - b);
}

/** The strictest of the rules; unspecified if there are none. */
export function strictest(rules: readonly OnDelete[]): OnDelete {
	return mergeRules(rules)[0] ?? OnDelete.ON_DELETE_UNSPECIFIED;
}

/** Whether two outgoing references have the same target and rule. The path does not matter. */
export function sameReference(
	a: Pick<OutgoingReference, "target" | "rule">,
	b: Pick<OutgoingReference, "target" | "rule">,
): boolean {
	return a.rule === b.rule && sameTarget(a.target, b.target);
}

/** Whether two keys name the same resource in the same region. */
export function sameTarget(a: KeyLike | undefined, b: KeyLike | undefined): boolean {
	return (
		a?.name === b?.name &&
		a?.kind === b?.kind &&
		a?.group === b?.group &&
		a?.namespace === b?.namespace &&
		a?.partition === b?.partition &&
		a?.region === b?.region
	);
}
