import { create } from "@bufbuild/protobuf";
import {
	type ID,
	type Reference,
	ReferenceSchema,
	Scope,
	type Tenancy,
	type Type,
} from "@plinth/proto";
import { familyKey, type TypeLike } from "./gvk.ts";
import type { ResourceType } from "./resource-type.ts";
import { defaultTenancyUnit, type TenancyLike } from "./scope.ts";

/** The name of a resource: an ID, a reference, or anything similar. */
export interface ResourceName {
	readonly type?: TypeLike | undefined;
	readonly tenancy?: TenancyLike | undefined;
	readonly name: string;
	/** The region of the original, if it is a copy of another region; absent or empty for all others. */
	readonly region?: string | undefined;
}

/*
 * Messages are created as literals: `create` costs as much as the rest of a short request.
 */

/** A new `Type` message. */
export function typeOf(type: TypeLike): Type {
	return {
		$typeName: "plinth.resource.v1.Type",
		group: type.group,
		groupVersion: type.groupVersion,
		kind: type.kind,
	};
}

/** A new `Tenancy` message; absent units are empty. */
export function tenancyOf(tenancy: TenancyLike = {}): Tenancy {
	return {
		$typeName: "plinth.resource.v1.Tenancy",
		partition: tenancy.partition ?? "",
		namespace: tenancy.namespace ?? "",
	};
}

/**
 * The ID of a resource of the given type. Units of tenancy that the type's scope has and the caller omits
 * are `default`.
 */
export function idOf(
	type: Pick<ResourceType, "type" | "scope">,
	name: string,
	tenancy: TenancyLike = {},
	uid = "",
): ID {
	const { scope } = type;
	return {
		$typeName: "plinth.resource.v1.ID",
		uid,
		name,
		type: typeOf(type.type),
		tenancy: tenancyOf({
			partition: scope === Scope.CLUSTER ? "" : tenancy.partition || defaultTenancyUnit,
			namespace: scope === Scope.NAMESPACE ? tenancy.namespace || defaultTenancyUnit : "",
		}),
	};
}

/** A reference to the resource of that name, independent of its incarnation. */
export function referenceTo(target: ResourceName, section = ""): Reference {
	return create(ReferenceSchema, {
		...(target.type && { type: typeOf(target.type) }),
		...(target.tenancy && { tenancy: tenancyOf(target.tenancy) }),
		name: target.name,
		section,
	});
}

/**
 * The key of a resource's name in a map: family, region of a copy, tenancy and name, without group version and uid.
 * Keys are unique, since no part of a valid name contains a slash or a tilde.
 */
export function nameKey(id: ResourceName): string {
	const family = id.type === undefined ? "" : familyKey(id.type);
	const place = id.region ? `${family}/~${id.region}` : family;
	return `${place}/${id.tenancy?.partition ?? ""}/${id.tenancy?.namespace ?? ""}/${id.name}`;
}

/** Whether both name the same resource, by family, region of a copy, tenancy and name. Uids are ignored. */
export function sameName(a: ResourceName | undefined, b: ResourceName | undefined): boolean {
	if (a === undefined || b === undefined) {
		return a === b;
	}
	return (
		a.name === b.name &&
		a.type?.kind === b.type?.kind &&
		a.type?.group === b.type?.group &&
		(a.tenancy?.namespace ?? "") === (b.tenancy?.namespace ?? "") &&
		(a.tenancy?.partition ?? "") === (b.tenancy?.partition ?? "") &&
		(a.region ?? "") === (b.region ?? "")
	);
}

/** The display name of a resource: `demo.v2.Artist default/default/miles`, or with the region of a copy: `… (us-west2)`. */
export function displayName(id: ResourceName): string {
	const type =
		id.type === undefined ? "resource" : `${id.type.group}.${id.type.groupVersion}.${id.type.kind}`;
	const path = [id.tenancy?.partition, id.tenancy?.namespace, id.name].filter((part) => part);
	return `${type} ${path.join("/")}${id.region ? ` (${id.region})` : ""}`;
}
