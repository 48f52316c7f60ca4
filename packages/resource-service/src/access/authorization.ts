import type { DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import {
	type Access,
	type Decision,
	type Decoded,
	DecodeError,
	decodeShared,
	denialOf,
	denied,
	displayName,
	operatorRead,
	operatorReference,
	operatorUndecodable,
	operatorWrite,
	type ResourceType,
	type TenancyLike,
	type TypeRegistry,
} from "@plinth/resource";

/** Decides what a caller may do with a resource. Without `decoded`, the decision may be `needs-resource`. */
type Decide = (
	type: ResourceType,
	access: Access,
	id: ID,
	decoded?: Decoded<DescMessage>,
) => Decision;

/** The hook of the type decides. If the type has no such hook, the right decides. */
function decideBy(hook: "read" | "write" | "reference", right: string): Decide {
	return (type, access, id, decoded) =>
		type.hooks.authorize?.[hook]?.(access, id, decoded) ??
		access.check(right, { type: type.type, tenancy: id.tenancy, name: id.name });
}

/** Decides whether the caller may read the resource. */
export const decideRead = decideBy("read", operatorRead);

/** Decides whether the caller may write or delete the resource. */
export const decideWrite = decideBy("write", operatorWrite);

/** Decides whether the caller may reference the resource from another namespace or partition. */
export const decideReference = decideBy("reference", operatorReference);

/** Whether the caller may read a stored resource. */
export function mayRead(type: ResourceType, access: Access, resource: Resource, id: ID): boolean {
	const byId = decideRead(type, access, id);
	const decision =
		byId.kind === "needs-resource" ? decideOnStored(decideRead, type, access, id, resource) : byId;
	return decision.kind === "allowed";
}

/**
 * The decision on a stored resource that the hook must see. A hook can't decide on undecodable data. Access to
 * it requires `operator:undecodable`, so that data which the hook might have hidden stays hidden, and an
 * administrator can still delete it.
 */
export function decideOnStored(
	decide: Decide,
	type: ResourceType,
	access: Access,
	id: ID,
	resource: Resource,
): Decision {
	let decoded: Decoded<DescMessage>;
	try {
		decoded = decodeShared(type, resource);
	} catch (error) {
		if (!(error instanceof DecodeError)) {
			throw error;
		}
		const { tenancy, name } = id;
		const decision = access.check(operatorUndecodable, { type: type.type, tenancy, name });
		const denial = denialOf(decision);
		return denial === undefined
			? decision
			: denied(`${error.message}, so its type can't decide who may see it: ${denial}`);
	}
	return decide(type, access, id, decoded);
}

/** The type in the group version of the stored resource, whose hooks can read its data; otherwise `named`. */
export function storedType(
	registry: TypeRegistry,
	named: ResourceType,
	{ id }: Resource,
): ResourceType {
	return (id?.type && registry.get(id.type)) ?? named;
}

/** Decides whether the caller may list resources of the type in the tenancy at all. */
export function decideList(type: ResourceType, access: Access, tenancy: TenancyLike): Decision {
	return (
		type.hooks.authorize?.list?.(access, tenancy) ??
		access.check(operatorRead, { type: type.type, tenancy })
	);
}

/**
 * Throws if the decision is a denial. Returns if access is allowed, or not decided yet.
 *
 * @throws ConnectError PermissionDenied with the authorizer's message.
 */
export function enforce(decision: Decision): void {
	const denial = denialOf(decision);
	if (denial !== undefined) {
		throw new ConnectError(denial, Code.PermissionDenied);
	}
}

/**
 * Throws unless access is allowed. A hook that has seen the resource must decide.
 *
 * @throws ConnectError PermissionDenied.
 */
export function enforceWithResource(decision: Decision, id: ID): void {
	enforce(decision.kind === "needs-resource" ? noDecision(id) : decision);
}

/** The denial for a hook that has seen the resource and has made no decision. */
export function noDecision(id: ID): Decision {
	return denied(`the authorization hook made no decision on ${displayName(id)}`);
}
