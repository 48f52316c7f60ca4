import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { ListRequest, ListResponse, Resource } from "@plinth/proto";
import { type Access, namePrefixProblem, type ResourceType } from "@plinth/resource";
import type { Consistency, ListQuery } from "@plinth/storage";
import { authenticateCall } from "../access/authenticate-call.ts";
import { decideList, enforce } from "../access/authorization.ts";
import { ReadFilter } from "../access/read-filter.ts";
import { malformedValue, missing } from "../errors/refusal.ts";
import { consistencyOf } from "../requests/headers.ts";
import { resourceServiceLimits } from "../requests/limits.ts";
import { notBeforeHeader, pagesHeader } from "../requests/position.ts";
import { queryRegion } from "../requests/regions.ts";
import {
	checkPageSize,
	queryTenancy,
	requireType,
	resolveType,
} from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";
import type { PagedList } from "./paged-lists.ts";
import { ResponsePage } from "./response-page.ts";
import { Slices } from "./slices.ts";

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
	const queryKey = JSON.stringify([
		...[type.key, query.tenancy, query.namePrefix, query.region],
		access.subject,
	]);
	const { list, after } =
		pageToken === ""
			? {
					list: await startList(context, query, { consistency, pageSize, queryKey, access }),
					after: undefined,
				}
			: context.pagedLists.resume(pageToken, queryKey);
	const visible = (resource: Resource) =>
		resource.id?.type?.groupVersion === type.type.groupVersion && readFilter.allows(resource);
	let page: Awaited<ReturnType<typeof takePage>> | undefined;
	try {
		const slices = new Slices(context.runtime, call, () =>
			list.snapshot.hold({ subject: list.subject }),
		);
		page = await takePage(list.snapshot.visit(after), visible, pageSize, slices);
	} finally {
		// The snapshot of a page token is retained until the token expires.
		if (pageToken === "" && !page?.more) {
			list.snapshot.release();
		}
	}
	const { resources, more } = page;
	const last = resources.at(-1);
	const nextPageToken =
		more && last !== undefined ? context.pagedLists.tokenAfter(list, last, pageToken) : "";
	if (nextPageToken !== "" && list.key !== undefined && call.requestHeader.has(notBeforeHeader)) {
		call.responseHeader.set(pagesHeader, list.key);
	}
	return {
		$typeName: "plinth.resource.v1.ListResponse",
		resources: resources.map(context.jsonForms.formFor(call)),
		nextPageToken,
		version: list.snapshot.version,
		typeVersion: list.snapshot.familyVersion,
	};
}

/** Starts a list. Its snapshot is held from its first pause on, or at once if the caller requests pages. */
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
	const owner = { subject, onEnded: () => list && context.pagedLists.forget(list) };
	const snapshot = await context.backend.snapshot(
		query,
		pageSize === 0 ? { consistency } : { consistency, heldBy: owner },
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
	checkPageSize(request.pageSize);
	const { namePrefix } = request;
	const region = queryRegion(context.region, request.region);
	return { type, query: { type: type.type, tenancy, namePrefix, ...region } };
}

/** Takes as many resources as fit into a response, in slices. Without a page size, all of them must fit. */
async function takePage(
	visited: Iterable<Resource | undefined>,
	visible: (resource: Resource) => boolean,
	pageSize: number,
	slices: Slices,
): Promise<{ readonly resources: Resource[]; readonly more: boolean }> {
	const page = new ResponsePage(pageSize);
	const { resources } = page;
	for (const resource of visited) {
		if (slices.isOver()) {
			await slices.next();
		}
		if (resource === undefined || !visible(resource)) {
			continue;
		}
		if (!page.add(resource)) {
			return { resources, more: true };
		}
		if (pageSize === 0 && page.isTooLarge) {
			throw new ConnectError(
				`the list is larger than ${resourceServiceLimits.listBytes} bytes: set page_size to read it in pages`,
				Code.ResourceExhausted,
			);
		}
	}
	return { resources, more: false };
}
