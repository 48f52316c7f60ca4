import { create } from "@bufbuild/protobuf";
import { cloneResource, OriginSchema, type Resource } from "@plinth/proto";
import type { Export, ExportedType } from "@plinth/proto/gen/plinth/peering/v1/peering_pb.js";
import {
	DecodeError,
	deletionTimestampKey,
	finalizersKey,
	hasNamespace,
	type ResourceType,
	tenancyOf,
} from "@plinth/resource";
import type { ListQuery } from "@plinth/storage";
import type { ClusterIdentity } from "../records/cluster-identity.ts";
import { compileMask, type FieldMask } from "./field-mask.ts";

/** One type of an export, for one peer. */
export interface TypeExportOptions {
	readonly type: ResourceType;
	readonly definition: Pick<Export, "partition" | "namespaces">;
	readonly exported: Pick<ExportedType, "namePrefixes" | "maskedFields">;
	readonly own: ClusterIdentity;
	/** The uid of the cluster that receives the copies. */
	readonly receiver: string;
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

	/** Whether the resource is offered to the peer. Neither is what has passed the peer itself: that cuts cycles. */
	offers({ id, origin }: Resource): boolean {
		const { type, definition, exported, receiver } = this.#options;
		return (
			id?.type?.groupVersion === type.type.groupVersion &&
			id.tenancy?.partition === definition.partition &&
			(this.#namespaces?.has(id.tenancy.namespace) ?? true) &&
			(exported.namePrefixes.length === 0 ||
				exported.namePrefixes.some((prefix) => id.name.startsWith(prefix))) &&
			!(origin?.path.includes(receiver) ?? false)
		);
	}

	/**
	 * The resource as it leaves the cluster: without what stays home, without masked fields, and with its origin. A copy
	 * that is passed on keeps the origin of its home, with a longer path. `undefined` if masked fields can't be found
	 * because its data is malformed.
	 */
	outgoing(resource: Resource): Resource | undefined {
		const { own } = this.#options;
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
		copy.origin = { ...home, path: [...home.path, own.uid], peering: "" };
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
