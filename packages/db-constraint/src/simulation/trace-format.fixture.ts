import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Lifecycle, type Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { finalizersOf, isMarkedForDeletion } from "@plinth/resource";
import { keyString } from "../shadow/resource-key.ts";

/** Formats a shadow in one line. */
export function describeShadow(shadow: Shadow | undefined): string {
	if (shadow === undefined) {
		return "gone";
	}
	const parts = [nameOf(Lifecycle, shadow.lifecycle)];
	for (const { deployment, tentative, establishment, rules } of shadow.sources) {
		const where = `${deployment?.service}-${deployment?.region}`;
		const names = rules.map((rule) => nameOf(OnDelete, rule)).join("+");
		parts.push(`<- ${where} ${names}${tentative ? " tentative" : ""} #${establishment}`);
	}
	for (const { target, rule, targetUid } of shadow.outgoing) {
		parts.push(`-> ${target && keyString(target)} ${nameOf(OnDelete, rule)} ${short(targetUid)}`);
	}
	for (const { owner, valid, notValidAnswers } of shadow.metaOwners) {
		parts.push(`owner ${owner && keyString(owner)} ${valid ? "valid" : `?${notValidAnswers}`}`);
	}
	for (const { deployment } of shadow.ownees) {
		parts.push(`owns in ${deployment?.service}-${deployment?.region}`);
	}
	parts.push(...shadow.tasks.map(({ task }) => `task ${task.case}`));
	if (shadow.progress !== undefined) {
		parts.push(`waits for ${shadow.progress.waitingFor.join("; ")}`);
	}
	return `${short(shadow.uid)} ${parts.join(", ")}`;
}

/** Formats a resource in one line. */
export function describeResource(resource: Resource | undefined): string {
	if (resource === undefined) {
		return "removed";
	}
	const marked = isMarkedForDeletion(resource) ? " marked" : "";
	const finalizers = finalizersOf(resource);
	const owners = resource.ownerReferences.map(({ name, region }) => ` owned by ${name}@${region}`);
	return `stored ${short(resource.id?.uid ?? "")}${marked} [${finalizers}]${owners}`;
}

/** The name of a value of an enum. */
export function nameOf(
	values: Readonly<Record<string, number>>,
	value: number | undefined,
): string {
	return Object.keys(values).find((name) => values[name] === value) ?? `${value}`;
}

function short(uid: string): string {
	return uid.slice(-5);
}
