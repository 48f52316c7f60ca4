import { create } from "@bufbuild/protobuf";
import { type ID, OriginSchema, type Resource } from "@plinth/proto";
import {
	deletionTimestampKey,
	finalizersKey,
	hasNamespace,
	isUlid,
	labelProblem,
	type ResourceType,
	tenancyOf,
	typeOf,
} from "@plinth/resource";
import type { CopyCheck } from "@plinth/resource-service";
import { peeringLimits } from "../limits.ts";

/** Where copies come from, and where they are stored. */
export interface CopyPlace {
	/** The partition of the import. */
	readonly partition: string;
	/** The name of the Peering. */
	readonly peering: string;
	/** The uid of the cluster that is dialed. */
	readonly peerCluster: string;
	/** The uid of this cluster. */
	readonly ownCluster: string;
}

/** A copy without uid and version, or why there is none. */
export type IncomingCopy = { readonly copy: Resource } | { readonly problem: string };

/** The ID under which a copy is stored, without a uid. */
export function copyId(
	type: ResourceType,
	{ partition }: Pick<CopyPlace, "partition">,
	{ namespace, name }: { readonly namespace: string; readonly name: string },
): ID {
	return {
		$typeName: "plinth.resource.v1.ID",
		uid: "",
		name,
		type: typeOf(type.type),
		tenancy: tenancyOf({ partition, namespace: hasNamespace(type.scope) ? namespace : "" }),
	};
}

/** Whether the name and the namespace can be those of a copy. */
export function isName(type: ResourceType, namespace: string, name: string): boolean {
	const isNamespaced = hasNamespace(type.scope);
	return (
		labelProblem(name) === undefined &&
		(isNamespaced ? labelProblem(namespace) === undefined : namespace === "")
	);
}

/**
 * The copy of a resource that a peer has sent. Nothing that a peer sends is trusted: the copy is built from the parts that
 * copies have, and checked as what a caller sends.
 */
export function incomingCopy(
	type: ResourceType,
	sent: Resource,
	place: CopyPlace,
	check: Pick<CopyCheck, "problem">,
): IncomingCopy {
	const { origin, generation, status, data } = sent;
	const { path = [], cluster = "", uid = "", version = "", incarnation = "" } = origin ?? {};
	if (path.length > peeringLimits.pathLength) {
		return { problem: `it has passed more than ${peeringLimits.pathLength} clusters` };
	}
	if (path.includes(place.ownCluster)) {
		return { problem: "it has passed this cluster before" };
	}
	if (
		path.at(-1) !== place.peerCluster ||
		path[0] !== cluster ||
		![...path, uid, incarnation, generation].every(isUlid) ||
		!/^\d{1,40}$/.test(version)
	) {
		return { problem: "its origin is malformed" };
	}
	const metadata = { ...sent.metadata };
	delete metadata[finalizersKey];
	delete metadata[deletionTimestampKey];
	const copy: Resource = {
		$typeName: "plinth.resource.v1.Resource",
		id: copyId(type, place, {
			namespace: sent.id?.tenancy?.namespace ?? "",
			name: sent.id?.name ?? "",
		}),
		version: "",
		generation,
		metadata,
		status,
		...(data && { data }),
		ownerReferences: [],
		origin: create(OriginSchema, {
			...{ cluster, uid, version, incarnation, path },
			region: (origin?.region ?? "").slice(0, 63),
			partition: (origin?.partition ?? "").slice(0, 63),
			peering: place.peering,
		}),
	};
	const problem = check.problem(copy);
	return problem === undefined ? { copy } : { problem };
}
