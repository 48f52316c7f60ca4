import type { ID, Tenancy, Type } from "@plinth/proto";
import {
	defaultTenancyUnit,
	hasNamespace,
	hasPartition,
	labelProblem,
	type ResourceType,
	scopeName,
	Tombstone,
	type TypeRegistry,
	tenancyOf,
} from "@plinth/resource";
import { wildcard } from "@plinth/storage";
import {
	got,
	invalidArgument,
	malformed,
	malformedValue,
	missing,
	notRegistered,
} from "../errors/refusal.ts";
import type { ServiceContext } from "../service-context.ts";
import { resourceServiceLimits } from "./limits.ts";
import { storedRegion } from "./regions.ts";

/** Checks that a type has a group, a group version and a kind. */
export function requireType(type: Type | undefined, path: string): Type {
	if (type === undefined || (!type.group && !type.groupVersion && !type.kind)) {
		throw missing(path);
	}
	if (!type.group || !type.groupVersion || !type.kind) {
		const part = !type.group ? "group" : !type.groupVersion ? "group_version" : "kind";
		throw missing(`${path}.${part}`);
	}
	return type;
}

/** The registered type with that name. */
export function resolveType(registry: TypeRegistry, type: Type): ResourceType {
	const resolved = registry.get(type);
	if (resolved === undefined) {
		throw notRegistered(type);
	}
	return resolved;
}

/** Checks that a name is present and well-formed. */
export function requireName(name: string, path: string): void {
	if (!name) {
		throw missing(path);
	}
	const problem = labelProblem(name);
	if (problem !== undefined) {
		throw malformedValue(path, problem, name);
	}
}

/** The ID in a request, checked and with its tenancy filled in. */
export interface CheckedId {
	readonly type: ResourceType;
	/** A new message. The request is not modified. */
	readonly id: ID;
}

/** What the meaning of an ID depends on: the registered types, and the region of the service. */
export type IdContext = Pick<ServiceContext, "registry" | "region">;

/**
 * Checks shape, type and scope of an ID, in this order, and fills in its tenancy. It has a region only if that is another one.
 *
 * @param path - the field of the request that contains the ID: `id`, `resource.id`, `resource.owner`.
 */
export function checkId(context: IdContext, id: ID | undefined, path: string): CheckedId {
	const shaped = checkShape(context, id, path);
	const type = resolveType(context.registry, shaped.type);
	return { type, id: { ...shaped, tenancy: fitTenancy(type, shaped.tenancy) } };
}

/** The ID of a resource whose type may no longer be registered. */
export interface CheckedFormerId {
	/** Absent if the type is not registered. */
	readonly type: ResourceType | undefined;
	readonly id: ID & { readonly type: Type };
}

/**
 * Like `checkId`, for a resource that may have been deleted and whose type may no longer be registered. The scope
 * of an unregistered type is unknown, so its tenancy is accepted as it is.
 */
export function checkFormerId(
	context: IdContext,
	id: ID | undefined,
	path: string,
): CheckedFormerId {
	const shaped = checkShape(context, id, path);
	const type = context.registry.get(shaped.type);
	const { partition = "", namespace = "" } = shaped.tenancy ?? {};
	const tenancy =
		type === undefined ? tenancyOf({ partition, namespace }) : fitTenancy(type, shaped.tenancy);
	return { type, id: { ...shaped, tenancy } };
}

/** Checks the parts of an ID that do not depend on its type. */
function checkShape(
	context: IdContext,
	id: ID | undefined,
	path: string,
): ID & { readonly type: Type } {
	if (id === undefined) {
		throw missing(path);
	}
	const type = requireType(id.type, `${path}.type`);
	requireName(id.name, `${path}.name`);
	checkUnits(id.tenancy, `${path}.tenancy`);
	const region = storedRegion(context.region, id.region, `${path}.region`);
	if (region === id.region) {
		return { ...id, type };
	}
	const { region: _, ...local } = id;
	return { ...local, type };
}

function checkUnits(tenancy: Tenancy | undefined, path: string): void {
	checkUnit(tenancy?.partition, path, "partition");
	checkUnit(tenancy?.namespace, path, "namespace");
}

function checkUnit(value: string | undefined, path: string, unit: "partition" | "namespace"): void {
	const problem = value ? labelProblem(value) : undefined;
	if (value && problem !== undefined) {
		throw malformedValue(`${path}.${unit}`, problem, value);
	}
}

/**
 * The tenancy of a resource of that type. Empty units that its scope has are set to their default; units that its
 * scope lacks are refused. A tombstone has the tenancy of the deleted resource, regardless of scope.
 */
function fitTenancy(type: ResourceType, tenancy: Tenancy | undefined): Tenancy {
	const { partition = "", namespace = "" } = tenancy ?? {};
	if (type.key === Tombstone.key) {
		return tenancyOf({ partition, namespace });
	}
	checkScope(type, partition, namespace);
	return tenancyOf({
		partition: hasPartition(type.scope) ? partition || defaultTenancyUnit : "",
		namespace: hasNamespace(type.scope) ? namespace || defaultTenancyUnit : "",
	});
}

function checkScope(type: ResourceType, partition: string, namespace: string): void {
	if (!hasPartition(type.scope) && partition) {
		throw invalidArgument(
			`cluster scoped resource ${type.key} cannot have a partition. ${got(partition)}`,
		);
	}
	if (!hasNamespace(type.scope) && namespace) {
		throw invalidArgument(
			`${scopeName(type.scope)} scoped resource ${type.key} cannot have a namespace. ${got(namespace)}`,
		);
	}
}

/**
 * The tenancy of a list or a watch: like that of a resource, but `*` matches all, and is also accepted for units
 * that the scope lacks. An absent tenancy matches all.
 */
export function queryTenancy(
	type: ResourceType,
	tenancy: Tenancy | undefined,
): { readonly partition: string; readonly namespace: string } {
	if (tenancy === undefined) {
		return { partition: wildcard, namespace: wildcard };
	}
	for (const unit of ["partition", "namespace"] as const) {
		const problem =
			tenancy[unit] && tenancy[unit] !== wildcard ? labelProblem(tenancy[unit]) : undefined;
		if (problem !== undefined) {
			throw malformedValue(`tenancy.${unit}`, problem, tenancy[unit]);
		}
	}
	const { partition, namespace } = tenancy;
	if (type.key === Tombstone.key) {
		return { partition, namespace };
	}
	checkScope(
		type,
		partition === wildcard ? "" : partition,
		namespace === wildcard ? "" : namespace,
	);
	return {
		partition: hasPartition(type.scope) ? partition || defaultTenancyUnit : "",
		namespace: hasNamespace(type.scope) ? namespace || defaultTenancyUnit : "",
	};
}

/** @throws ConnectError InvalidArgument if a page can't have that size. */
export function checkPageSize(pageSize: number): void {
	if (pageSize < 0 || pageSize > resourceServiceLimits.pageSize) {
		throw malformed("page_size", `must be from 0 to ${resourceServiceLimits.pageSize}`);
	}
}
