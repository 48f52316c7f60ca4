import { Code } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import type {
	OutgoingReference,
	ResourceKey,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Refused } from "@plinth/storage";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import { nameOfField, nameOfRecord } from "../shadow/recorded-reference.ts";
import { displayKey, keyOf, keyString } from "../shadow/resource-key.ts";
import type { DeclaredReference } from "./service-descriptor.ts";

/** A reference of a resource, and the service and region that store its target. */
export interface LocatedReference {
	readonly path: string;
	/** See `FoundReference`; empty if the resource can't be read, and its record is of an older server. */
	readonly field: string;
	readonly target: ResourceKey;
	readonly rule: DeclaredReference["rule"];
	/** The version of the target's type that the field names; empty if the field is not known. */
	readonly groupVersion: string;
	/** Empty for the service of this deployment. */
	readonly service: string;
	/** The type that the reference names, if its field may not reference that type. */
	readonly wrongType?: string;
}

/** The references of a resource: what each field references, once. References to itself never count. */
export function locateReferences(
	context: Pick<ConstraintContext, "descriptor" | "environment">,
	resource: Resource,
): readonly LocatedReference[] {
	const { descriptor, environment } = context;
	const own = resource.id && keyString(keyOf(resource.id, environment.self.region));
	const located = new Map<string, LocatedReference>();
	for (const declared of descriptor.referencesOf(resource)) {
		const reference = locate(context, declared);
		if (reference.service !== "" || keyString(reference.target) !== own) {
			located.set(nameOfLocated(reference), reference);
		}
	}
	return [...located.values()];
}

/** The place of the target of one field. */
export function locate(
	{ environment }: Pick<ConstraintContext, "environment">,
	{ path, field, target, groupVersion, rule, service, wrongType }: DeclaredReference,
): LocatedReference {
	const { group, kind, name } = target;
	const id = { type: { group, groupVersion: "", kind }, tenancy: target, name };
	const key = keyOf(id, target.region || environment.self.region);
	return {
		...{ path, field, target: key, groupVersion, rule, service },
		...(wrongType === undefined ? {} : { wrongType }),
	};
}

/** What distinguishes the references of a resource. The elements of a list or of a map are one field. */
export function nameOfLocated(reference: LocatedReference): string {
	if (isPlanted("record a target once for each rule")) {
		return nameOfField({ ...reference, field: String(reference.rule) });
	}
	return nameOfField(reference);
}

/**
 * The references of a resource: the declared ones if its type is registered and can decode it. Otherwise its
 * data can't be read and it keeps the references of its shadow, of which those to unknown services can't be
 * located. Neither can one to a wrong type that a server before revision 4 has recorded beside the right one.
 */
export function locatedOf(
	{ descriptor }: Pick<ConstraintContext, "descriptor">,
	resource: Resource,
	declared: readonly LocatedReference[],
	recorded: readonly OutgoingReference[],
): {
	readonly located: readonly LocatedReference[];
	readonly unlocated: readonly OutgoingReference[];
} {
	if (descriptor.knows(resource)) {
		return { located: declared, unlocated: [] };
	}
	const located: LocatedReference[] = [];
	const unlocated: OutgoingReference[] = [];
	const held = new Set(recorded.filter(({ targetUid }) => targetUid !== "").map(nameOfRecord));
	for (const each of recorded) {
		const { path, field, target, rule, missing } = each;
		const service = target && descriptor.serviceOfGroup(target.group);
		const isWrong = each.targetUid === "" && held.has(nameOfRecord(each));
		if (target === undefined || service === undefined || isWrong) {
			unlocated.push(each);
		} else {
			const wrong = missing?.wrongType ? { wrongType: missing.wrongType } : {};
			located.push({ path, field, target, groupVersion: "", rule, service, ...wrong });
		}
	}
	return { located, unlocated };
}

/** The error for a reference of a wrong type. */
export function refuseType({ path, target }: LocatedReference, wrongType: string): Refused {
	return new Refused(
		Code.InvalidArgument,
		`${path} must reference a ${target.group}.${target.kind}, not a ${wrongType}`,
	);
}

/** Whether the deployment that stores the target is known. */
export function isDeploymentKnown(
	{ environment }: Pick<ConstraintContext, "environment">,
	{ service, target }: Pick<LocatedReference, "service" | "target">,
): boolean {
	return environment.find(service || environment.self.service, target.region) !== undefined;
}

/** Whether this deployment stores the target. */
export function isLocal(
	{ environment }: Pick<ConstraintContext, "environment">,
	{ service, target }: Pick<LocatedReference, "service" | "target">,
): boolean {
	return service === "" && target.region === environment.self.region;
}

/**
 * The deployment that stores the target.
 *
 * @throws Refused FailedPrecondition if none exists, Unavailable if one may exist.
 */
export function deploymentOf(
	{ environment }: Pick<ConstraintContext, "environment">,
	{ path, service, target }: Pick<LocatedReference, "path" | "service" | "target">,
): DeploymentInfo {
	const name = service || environment.self.service;
	const found = environment.find(name, target.region);
	if (found === undefined) {
		const problem = `${path} references ${displayKey(target)}, but no deployment of ${name || "this service"} in region "${target.region}" is known`;
		throw environment.isComplete === false
			? new Refused(Code.Unavailable, `${problem} yet: a meta deployment can't be reached`)
			: new Refused(Code.FailedPrecondition, problem);
	}
	return found;
}
