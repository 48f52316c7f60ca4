import { fromBinary } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import {
	type OutgoingReference,
	type ResourceKey,
	ResourceShadowSchema,
	type Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { typeNameOf } from "@plinth/resource";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import type { Session } from "../session.ts";
import { eachResource } from "./read-resources.ts";

/** The type of the shadows, a server's records of references. */
const shadowType = { group: "schema", groupVersion: "v1", kind: "ResourceShadow" };

/** A reference from another resource of the same deployment. */
export interface IncomingReference {
	readonly from: ResourceKey;
	readonly reference: OutgoingReference;
}

/** The references from and to one resource that a server has recorded. */
export interface RecordedReferences {
	/** Its shadow, if any: its references, and the deployments that reference it. */
	readonly shadow: Shadow | undefined;
	readonly incoming: readonly IncomingReference[];
}

/**
 * Searches all shadows of the server for references from and to the resource.
 *
 * @throws Failure if the server has no shadows, or the caller may not read them.
 */
export async function readReferences(
	session: Session,
	{ id }: Resource,
): Promise<RecordedReferences> {
	const type = (await session.types()).get(shadowType);
	if (type === undefined) {
		throw new Failure(
			exitCodes.failed,
			"the server has no references: it has no type schema.v1.ResourceShadow, or the caller may not read it",
		);
	}
	const own = {
		group: id?.type?.group ?? "",
		kind: id?.type?.kind ?? "",
		partition: id?.tenancy?.partition ?? "",
		namespace: id?.tenancy?.namespace ?? "",
		name: id?.name ?? "",
	};
	let shadow: Shadow | undefined;
	const incoming: IncomingReference[] = [];
	for await (const record of eachResource(session, type, { namePrefix: "", everywhere: true })) {
		const one = shadowOf(record);
		if (one?.resource === undefined) {
			continue;
		}
		if (isSame(one.resource, own)) {
			shadow = one;
		}
		for (const reference of one.outgoing) {
			if (reference.target !== undefined && isSame(reference.target, own)) {
				incoming.push({ from: one.resource, reference });
			}
		}
	}
	return { shadow, incoming };
}

function shadowOf({ data }: Resource): Shadow | undefined {
	if (data === undefined || typeNameOf(data) !== ResourceShadowSchema.typeName) {
		return undefined;
	}
	const { record } = fromBinary(ResourceShadowSchema, data.value);
	return record.case === "shadow" ? record.value : undefined;
}

/** Whether both name the same resource. All shadows of a server belong to one deployment. */
function isSame(key: ResourceKey, own: Omit<ResourceKey, "$typeName" | "region">): boolean {
	return (
		key.group === own.group &&
		key.kind === own.kind &&
		key.partition === own.partition &&
		key.namespace === own.namespace &&
		key.name === own.name
	);
}
