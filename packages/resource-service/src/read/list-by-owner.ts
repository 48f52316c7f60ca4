import type { HandlerContext } from "@connectrpc/connect";
import type { ListByOwnerRequest, ListByOwnerResponse, Resource } from "@plinth/proto";
import { operatorRead, type ResourceName } from "@plinth/resource";
import { authenticateCall } from "../access/authenticate-call.ts";
import { decideList, decideRead, enforce } from "../access/authorization.ts";
import { ReadFilter } from "../access/read-filter.ts";
import { invalidArgument, missing } from "../errors/refusal.ts";
import { consistencyOf } from "../requests/headers.ts";
import { checkFormerId, checkPageSize } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";
import { decodePosition, encodePosition } from "./page-position.ts";
import { ResponsePage } from "./response-page.ts";
import { Slices } from "./slices.ts";

/**
 * The resources of all types that one incarnation of a resource owns, and that the caller may read: all of them, or
 * a page.
 *
 * A page begins after the last name of the previous one, in the current state: no snapshot is held for it, so its
 * token does not expire. A resource that exists while all pages are read is on exactly one of them.
 */
export async function listByOwner(
	context: ServiceContext,
	request: ListByOwnerRequest,
	call: HandlerContext,
): Promise<ListByOwnerResponse> {
	const { type, id } = checkOwner(context, request);
	const { pageSize, pageToken } = request;
	checkPageSize(pageSize);
	let after = pageToken === "" ? undefined : positionOf(pageToken);
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
	const slices = new Slices(context.runtime, call);
	const page = new ResponsePage(pageSize);
	// One more than a page shows whether there is a next one. Not too few: the caller may not see most of them.
	const limit = pageSize === 0 ? Number.POSITIVE_INFINITY : Math.max(pageSize, 100) + 1;
	for (;;) {
		const owned = await context.backend.listByOwner(id, { consistency, after, limit });
		for (const resource of owned) {
			if (slices.isOver()) {
				await slices.next();
			}
			if (readFilter.allows(resource) && !page.add(resource)) {
				return responseOf(page, tokenAfter(page.resources.at(-1)), context, call);
			}
		}
		if (owned.length < limit) {
			return responseOf(page, "", context, call);
		}
		after = owned.at(-1)?.id;
	}
}

/** The owner in a request, whose type may no longer be registered: what it owned must still be found. */
function checkOwner(context: ServiceContext, { owner }: ListByOwnerRequest) {
	if (owner === undefined) {
		throw missing("owner");
	}
	const checked = checkFormerId(context, owner, "owner");
	if (!checked.id.uid) {
		throw invalidArgument("owner uid is required");
	}
	return checked;
}

function responseOf(
	{ resources }: ResponsePage,
	nextPageToken: string,
	{ jsonForms }: ServiceContext,
	call: HandlerContext,
): ListByOwnerResponse {
	return {
		$typeName: "plinth.resource.v1.ListByOwnerResponse",
		resources: resources.map(jsonForms.formFor(call)),
		nextPageToken,
	};
}

function tokenAfter(last: Resource | undefined): string {
	const { type, tenancy, name = "", region } = last?.id ?? {};
	return encodePosition([
		type?.group ?? "",
		type?.kind ?? "",
		tenancy?.partition ?? "",
		tenancy?.namespace ?? "",
		name,
		...(region === undefined ? [] : [region]),
	]);
}

/** @throws ConnectError InvalidArgument if the token is malformed. */
function positionOf(token: string): ResourceName {
	const parts = decodePosition(token, 5, 6);
	const [group = "", kind = "", partition = "", namespace = "", name = "", region] = parts;
	const type = { group, groupVersion: "", kind };
	return { type, tenancy: { partition, namespace }, name, region };
}
