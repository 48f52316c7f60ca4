import { create } from "@bufbuild/protobuf";
import { type ID, type Origin, OriginSchema, type Resource } from "@plinth/proto";
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
export type CopyPlace = PeerPlace | RegionPlace;

/** Copies of a peer: an import stores them in a partition of its own. */
export interface PeerPlace {
	readonly kind: "peer";
	/** The partition of the import. */
	readonly partition: string;
	/** The name of the Peering. */
	readonly peering: string;
	/** The uid of the cluster that is dialed. */
	readonly peerCluster: string;
	/** The uid of this cluster. */
	readonly ownCluster: string;
}

/** Copies of another region: they keep the place of their originals. */
export interface RegionPlace {
	readonly kind: "region";
	readonly partition: string;
	readonly region: string;
	/** The uid of the deployment that is called. */
	readonly deployment: string;
	/** The uid of the cluster that has the originals, and the incarnation of its storage. */
	readonly cluster: string;
	readonly incarnation: string;
}

/** A copy without uid and version, or why there is none. */
export type IncomingCopy = { readonly copy: Resource } | { readonly problem: string };

/** The ID under which a copy is stored, without a uid. */
export function copyId(
	type: ResourceType,
	place: CopyPlace,
	{ namespace, name }: { readonly namespace: string; readonly name: string },
): ID {
	return {
		$typeName: "plinth.resource.v1.ID",
		uid: "",
		name,
		type: typeOf(type.type),
		tenancy: tenancyOf({
			partition: place.partition,
			namespace: hasNamespace(type.scope) ? namespace : "",
		}),
		...(place.kind === "region" && { region: place.region }),
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
	const wrong = originProblem(origin ?? create(OriginSchema), place);
	if (wrong !== undefined || !isUlid(generation)) {
		return { problem: wrong ?? malformedOrigin };
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
			peering: place.kind === "peer" ? place.peering : "",
		}),
	};
	const problem = check.problem(copy);
	return problem === undefined ? { copy } : { problem };
}

const malformedOrigin = "its origin is malformed";

/** Why copies with that origin are not accepted. */
function originProblem(
	{ path, cluster, uid, incarnation, version, region, partition }: Origin,
	place: CopyPlace,
): string | undefined {
	if (path.length > peeringLimits.pathLength) {
		return `it has passed more than ${peeringLimits.pathLength} clusters`;
	}
	if (place.kind === "peer" && path.includes(place.ownCluster)) {
		return "it has passed this cluster before";
	}
	const isFromPlace =
		place.kind === "peer"
			? path.at(-1) === place.peerCluster && path[0] === cluster
			: path.length === 0 &&
				cluster === place.cluster &&
				incarnation === place.incarnation &&
				region === place.region &&
				partition === place.partition;
	const isWellFormed =
		[...path, cluster, uid, incarnation].every(isUlid) && /^\d{1,40}$/.test(version);
	return isFromPlace && isWellFormed ? undefined : malformedOrigin;
}
