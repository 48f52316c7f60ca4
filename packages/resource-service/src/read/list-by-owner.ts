import type { HandlerContext } from "@connectrpc/connect";
import type { ListByOwnerRequest, Resource } from "@plinth/proto";
import { operatorRead } from "@plinth/resource";
import { authenticateCall } from "../access/authenticate-call.ts";
import { decideList, decideRead, enforce } from "../access/authorization.ts";
import { ReadFilter } from "../access/read-filter.ts";
import { invalidArgument, missing } from "../errors/refusal.ts";
import { consistencyOf } from "../requests/headers.ts";
import { checkFormerId } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";

/** The resources of all types that one incarnation of a resource owns, and that the caller may read. */
export async function listByOwner(
	context: ServiceContext,
	request: ListByOwnerRequest,
	call: HandlerContext,
): Promise<Resource[]> {
	if (request.owner === undefined) {
		throw missing("owner");
	}
	// Resources of a deleted owner must be deleted even if its type is no longer registered.
	const { type, id } = checkFormerId(context.registry, request.owner, "owner");
	if (!id.uid) {
		throw invalidArgument("owner uid is required");
	}
	const consistency = consistencyOf(call);
	const access = await authenticateCall(context.authorizer, call);
	enforce(
		type === undefined
			? access.check(operatorRead, { type: id.type, tenancy: id.tenancy, name: id.name })
			: decideList(type, access, id.tenancy ?? {}),
	);
	if (type !== undefined) {
		enforce(decideRead(type, access, id));
	}
	const readFilter = new ReadFilter(context.registry, access);
	const owned = await context.backend.listByOwner(id, { consistency });
	return owned.filter((resource) => readFilter.allows(resource));
}
