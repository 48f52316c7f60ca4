import { create } from "@bufbuild/protobuf";
import { cloneResource, OriginSchema, type Resource } from "@plinth/proto";
import type { Export, ExportedType } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import {
	DecodeError,
	deletionTimestampKey,
	finalizersKey,
	hasNamespace,
	isMarkedForDeletion,
	type ResourceType,
	tenancyOf,
} from "@plinth/resource";
import type { ListQuery } from "@plinth/storage";
import type { ClusterIdentity } from "../records/cluster-identity.ts";
import { compileMask, type FieldMask } from "./field-mask.ts";

/** Who receives the copies. */
export type Receiver =
	| {
			readonly kind: "peer";
			/** The uid of the cluster. */
			readonly cluster: string;
	  }
	| {
			/** Another region of the same service. */
			readonly kind: "region";
			/** The region of the originals. */
			readonly home: string;
			/** The group versions of the type's family of which resources are offered. */
			readonly versions: ReadonlySet<string>;
	  };

/** One type of an export, for one peer or one region. */
export interface TypeExportOptions {
	readonly type: ResourceType;
	readonly definition: Pick<Export, "partition" | "namespaces">;
	readonly exported: Pick<ExportedType, "namePrefixes" | "maskedFields">;
	readonly own: ClusterIdentity;
	readonly receiver: Receiver;
}

/**
 * What an export offers of one type: which resources, and in which form they leave the cluster. Nothing leaves it in
 * another way.
 */
export class TypeExport {
	readonly type: ResourceType;
	/** Selects at least what is offered. */
	readonly query: ListQuery;
	readonly #options: TypeExportOptions;
	readonly #namespaces: ReadonlySet<string> | undefined;
	readonly #mask: FieldMask;

	/** @throws Error if a masked field does not exist: then nothing may leave. */
	constructor(options: TypeExportOptions) {
		const { type, definition, exported } = options;
		this.type = type;
		this.#options = options;
		const { namespaces } = definition;
		const isSelective = hasNamespace(type.scope) && namespaces.length > 0;
		this.#namespaces = isSelective ? new Set(namespaces) : undefined;
		const compiled = compileMask(type.schema, exported.maskedFields);
		if ("problem" in compiled) {
			throw new Error(compiled.problem);
		}
		this.#mask = compiled.mask;
		const [namespace = "*", ...otherNamespaces] = isSelective ? namespaces : [];
		const [prefix = "", ...otherPrefixes] = exported.namePrefixes;
		this.query = {
			type: type.type,
			tenancy: {
				partition: definition.partition,
				namespace: otherNamespaces.length === 0 ? namespace : "*",
			},
			namePrefix: otherPrefixes.length === 0 ? prefix : "",
		};
	}

	/**
	 * Whether the resource is offered to the receiver. A peer is not offered what has passed it: that cuts cycles. Nor is it
	 * offered a copy that is being removed, whose status is about what references it here. A region is offered originals only.
	 */
	offers(resource: Resource): boolean {
		const { id, origin } = resource;
		const { type, definition, exported, receiver } = this.#options;
		const groupVersion = id?.type?.groupVersion ?? "";
		const isOffered =
			receiver.kind === "peer"
				? groupVersion === type.type.groupVersion &&
					!(origin?.path.includes(receiver.cluster) ?? false) &&
					!(origin !== undefined && isMarkedForDeletion(resource))
				: receiver.versions.has(groupVersion) && origin === undefined;
		return (
			isOffered &&
			id?.tenancy?.partition === definition.partition &&
			(this.#namespaces?.has(id.tenancy.namespace) ?? true) &&
			(exported.namePrefixes.length === 0 ||
				exported.namePrefixes.some((prefix) => id.name.startsWith(prefix)))
		);
	}

	/**
	 * The resource as it leaves the cluster: without what stays home, without masked fields, and with its origin. A copy
	 * that is passed on keeps the origin of its home, with a longer path; one for a region has its region, and no path, since it
	 * is not passed on. `undefined` if masked fields can't be found
	 * because its data is malformed.
	 */
	outgoing(resource: Resource): Resource | undefined {
		const { own, receiver } = this.#options;
		const copy = cloneResource(resource);
		const { id, version } = resource;
		const home =
			resource.origin ??
			create(OriginSchema, {
				cluster: own.uid,
				incarnation: own.incarnation,
				uid: id?.uid ?? "",
				version,
				partition: id?.tenancy?.partition ?? "",
			});
		copy.origin =
			receiver.kind === "peer"
				? { ...home, path: [...home.path, own.uid], peering: "" }
				: { ...home, region: receiver.home };
		if (copy.id !== undefined) {
			const { namespace = "" } = copy.id.tenancy ?? {};
			copy.id = { ...copy.id, uid: "", tenancy: tenancyOf({ namespace }) };
		}
		copy.version = "";
		delete copy.owner;
		copy.ownerReferences = [];
		delete copy.metadata[finalizersKey];
		delete copy.metadata[deletionTimestampKey];
		try {
			this.#mask(copy);
		} catch (error) {
			if (error instanceof DecodeError) {
				return undefined;
			}
			throw error;
		}
		return copy;
	}
}
