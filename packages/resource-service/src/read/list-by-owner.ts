import type { HandlerContext } from "@connectrpc/connect";
import type { ListByOwnerRequest, Resource } from "@plinth/proto";
import { operatorRead } from "@plinth/resource";
import { decideList, decideRead, enforce } from "../access/authorization.ts";
import { Readable } from "../access/readable.ts";
import { invalidArgument, missing } from "../errors/refusal.ts";
import { authenticateCall } from "../requests/headers.ts";
import { checkFormerId } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";

/** What one incarnation of a resource owns, of all types, as far as the caller may read it. */
export async function listByOwner(
	context: ServiceContext,
	request: ListByOwnerRequest,
	call: HandlerContext,
): Promise<Resource[]> {
	if (request.owner === undefined) {
		throw missing("owner");
	}
	// What a deleted resource owned has to go, though no module knows its type any more.
	const { type, id } = checkFormerId(context.registry, request.owner, "owner");
	if (!id.uid) {
		throw invalidArgument("owner uid is required");
	}
	const access = await authenticateCall(context.authorizer, call);
	enforce(
		type === undefined
			? access.check(operatorRead, { type: id.type, tenancy: id.tenancy, name: id.name })
			: decideList(type, access, id.tenancy ?? {}),
	);
	if (type !== undefined) {
		enforce(decideRead(type, access, id));
	}
	const readable = new Readable(context.registry, access);
	const owned = await context.backend.listByOwner(id);
	return owned.filter((resource) => readable.has(resource));
}
