import { Code, type HandlerContext } from "@connectrpc/connect";
import type { ReadRequest, Resource } from "@plinth/proto";
import { NotFound, storedAs } from "@plinth/storage";
import { authenticateCall } from "../access/authenticate-call.ts";
import {
	decideOnStored,
	decideRead,
	enforce,
	enforceWithResource,
} from "../access/authorization.ts";
import { consistencyOf } from "../requests/headers.ts";
import { checkId } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";
import { notFoundError } from "../tenancy/tenancy-check.ts";

/** Reads one resource, by name or by name and uid. */
export async function read(
	context: ServiceContext,
	request: ReadRequest,
	call: HandlerContext,
): Promise<Resource> {
	const { type, id } = checkId(context, request.id, "id");
	const consistency = consistencyOf(call);
	const authenticated = authenticateCall(context.authorizer, call);
	// Most tokens are checked without waiting.
	const access = authenticated instanceof Promise ? await authenticated : authenticated;
	const decision = decideRead(type, access, id);
	enforce(decision);
	let resource: Resource;
	try {
		resource =
			consistency === "eventual" && context.backend.lookupNow !== undefined
				? storedAs(id, context.backend.lookupNow(id))
				: await context.backend.read(id, { consistency });
	} catch (failure) {
		throw failure instanceof NotFound
			? await notFoundError(context.backend, id, Code.NotFound)
			: failure;
	}
	if (decision.kind === "needs-resource") {
		enforceWithResource(decideOnStored(decideRead, type, access, id, resource), id);
	}
	return resource;
}
