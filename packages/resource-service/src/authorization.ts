import type { DescMessage } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { ID } from "@plinth/proto";
import {
	type Access,
	type Decision,
	type Decoded,
	displayName,
	operatorRead,
	operatorWrite,
	type ResourceType,
	type TenancyLike,
} from "@plinth/resource";

/** May they read the resource? Without `decoded` the answer may be that it takes the resource. */
export function decideRead(
	type: ResourceType,
	access: Access,
	id: ID,
	decoded?: Decoded<DescMessage>,
): Decision {
	return (
		type.hooks.authorize?.read?.(access, id, decoded) ??
		access.check(operatorRead, { type: type.type, tenancy: id.tenancy, name: id.name })
	);
}

/** May they write or delete the resource? As `decideRead`. */
export function decideWrite(
	type: ResourceType,
	access: Access,
	id: ID,
	decoded?: Decoded<DescMessage>,
): Decision {
	return (
		type.hooks.authorize?.write?.(access, id, decoded) ??
		access.check(operatorWrite, { type: type.type, tenancy: id.tenancy, name: id.name })
	);
}

/** May they list resources of the type there at all? */
export function decideList(type: ResourceType, access: Access, tenancy: TenancyLike): Decision {
	return (
		type.hooks.authorize?.list?.(access, tenancy) ??
		access.check(operatorRead, { type: type.type, tenancy })
	);
}

/**
 * Passes what is allowed, and what can't be told yet.
 *
 * @throws ConnectError PermissionDenied with the authorizer's message.
 */
export function enforce(decision: Decision): void {
	if (decision.kind === "denied") {
		throw new ConnectError(decision.message, Code.PermissionDenied);
	}
}

/**
 * Passes what is allowed. Whoever has seen the resource must be able to tell.
 *
 * @throws ConnectError PermissionDenied.
 */
export function enforceWithResource(decision: Decision, id: ID): void {
	enforce(decision);
	if (decision.kind === "needs-resource") {
		throw new ConnectError(`no decision on ${displayName(id)}`, Code.PermissionDenied);
	}
}
