import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { ListRequest, ListResponse, Resource } from "@plinth/proto";
import { type Access, namePrefixProblem, type ResourceType } from "@plinth/resource";
import type { Consistency, ListQuery } from "@plinth/storage";
import { authenticateCall } from "../access/authenticate-call.ts";
import { decideList, enforce } from "../access/authorization.ts";
import { ReadFilter } from "../access/read-filter.ts";
import { malformed, malformedValue, missing } from "../errors/refusal.ts";
import { consistencyOf } from "../requests/headers.ts";
import { approximateSize, resourceServiceLimits } from "../requests/limits.ts";
import { queryTenancy, requireType, resolveType } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";
import type { PagedList } from "./paged-lists.ts";

/** The resources of a query from one snapshot: all of them, or a page. */
export async function list(
	context: ServiceContext,
	request: ListRequest,
	call: HandlerContext,
): Promise<ListResponse> {
	const { type, query } = checkListRequest(context, request);
	const consistency = consistencyOf(call);
	const access = await authenticateCall(context.authorizer, call);
	enforce(decideList(type, access, query.tenancy));
	const readFilter = new ReadFilter(context.registry, access);
	const { pageSize, pageToken } = request;
	const queryKey = JSON.stringify([type.key, query.tenancy, query.namePrefix, access.subject]);
	const { list, after } =
		pageToken === ""
			? {
					list: await startList(context, query, { consistency, pageSize, queryKey, access }),
					after: undefined,
				}
			: context.pagedLists.resume(pageToken, queryKey);
	const visible = (resource: Resource) =>
		resource.id?.type?.groupVersion === type.type.groupVersion && readFilter.allows(resource);
	let page: ReturnType<typeof takePage> | undefined;
	try {
		page = takePage(list.snapshot.resources(after), visible, pageSize);
	} finally {
		// The snapshot of a page token is retained until the token expires.
		if (pageToken === "" && !page?.more) {
			list.snapshot.release();
		}
	}
	const { resources, more } = page;
	const last = resources.at(-1);
	return {
		$typeName: "plinth.resource.v1.ListResponse",
		resources: resources.map(context.jsonForms.formFor(call)),
		nextPageToken:
			more && last !== undefined ? context.pagedLists.tokenAfter(list, last, pageToken) : "",
		version: list.snapshot.version,
	};
}

/** Starts a list. Its snapshot is retained only if the caller requests pages. */
async function startList(
	context: ServiceContext,
	query: ListQuery,
	{
		consistency,
		pageSize,
		queryKey,
		access,
	}: {
		readonly consistency: Consistency;
		readonly pageSize: number;
		readonly queryKey: string;
		readonly access: Access;
	},
): Promise<PagedList> {
	const subject = context.isInternal ? undefined : access.subject;
	let list: PagedList | undefined;
	const snapshot = await context.backend.snapshot(
		query,
		pageSize === 0
			? { consistency }
			: {
					consistency,
					heldBy: { subject, onEnded: () => list && context.pagedLists.forget(list) },
				},
	);
	list = { snapshot, queryKey, subject };
	return list;
}

function checkListRequest(
	context: ServiceContext,
	request: ListRequest,
): { readonly type: ResourceType; readonly query: ListQuery } {
	const named = requireType(request.type, "type");
	if (request.tenancy === undefined) {
		throw missing("tenancy");
	}
	const type = resolveType(context.registry, named);
	const tenancy = queryTenancy(type, request.tenancy);
	const problem = namePrefixProblem(request.namePrefix);
	if (problem !== undefined) {
		throw malformedValue("name_prefix", problem, request.namePrefix);
	}
	if (request.pageSize < 0 || request.pageSize > resourceServiceLimits.pageSize) {
		throw malformed("page_size", `must be from 0 to ${resourceServiceLimits.pageSize}`);
	}
	return { type, query: { type: type.type, tenancy, namePrefix: request.namePrefix } };
}

/** Takes as many resources as fit into a response. Without a page size, all of them must fit. */
function takePage(
	all: Iterable<Resource>,
	visible: (resource: Resource) => boolean,
	pageSize: number,
): { readonly resources: Resource[]; readonly more: boolean } {
	const resources: Resource[] = [];
	let bytes = 0;
	for (const resource of all) {
		if (!visible(resource)) {
			continue;
		}
		bytes += approximateSize(resource);
		if (bytes > resourceServiceLimits.listBytes && pageSize === 0) {
			throw new ConnectError(
				`the list is larger than ${resourceServiceLimits.listBytes} bytes: set page_size to read it in pages`,
				Code.ResourceExhausted,
			);
		}
		if (
			resources.length > 0 &&
			(resources.length === pageSize || bytes > resourceServiceLimits.listBytes)
		) {
			return { resources, more: true };
		}
		resources.push(resource);
	}
	return { resources, more: false };
}
