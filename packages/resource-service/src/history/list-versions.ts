import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { ID, Resource } from "@plinth/proto";
import {
	Change,
	type ListVersionsRequest,
	type ListVersionsResponse,
	type ResourceVersion,
} from "@plinth/proto/gen/plinth/history/v1/history_service_pb.js";
import type { Access, Authorizer, Decision, ResourceType, TypeRegistry } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import {
	GroupVersionMismatch,
	type HistorySource,
	type StorageBackend,
	type StoredVersion,
	type VersionChange,
} from "@plinth/storage";
import { authenticateCall } from "../access/authenticate-call.ts";
import {
	decideOnStored,
	decideRead,
	enforce,
	enforceWithResource,
} from "../access/authorization.ts";
import { ReadFilter } from "../access/read-filter.ts";
import { malformed } from "../errors/refusal.ts";
import type { JsonForms } from "../read/json-forms.ts";
import { ResponsePage } from "../read/response-page.ts";
import { Slices } from "../read/slices.ts";
import { consistencyOf } from "../requests/headers.ts";
import { resourceServiceLimits } from "../requests/limits.ts";
import { checkId } from "../requests/request-checks.ts";
import { notFoundError } from "../tenancy/tenancy-check.ts";
import { lastWriteMs } from "./last-write.ts";

/** The components that a history service shares between calls. */
interface HistoryContext {
	readonly backend: Pick<StorageBackend, "lookup">;
	readonly histories: HistorySource;
	readonly registry: TypeRegistry;
	/** The region of the service, if it has one. */
	readonly region?: string | undefined;
	readonly authorizer: Authorizer;
	readonly runtime: Runtime;
	readonly jsonForms: JsonForms;
}

const defaultLimit = 20;

/** The recent versions of a resource that the caller may read. */
export async function listVersions(
	context: HistoryContext,
	request: ListVersionsRequest,
	call: HandlerContext,
): Promise<ListVersionsResponse> {
	const { type, id } = checkId(context, request.id, "id");
	const limit = checkLimit(request.limit);
	const consistency = consistencyOf(call);
	const access = await authenticateCall(context.authorizer, call);
	const decision = decideRead(type, access, id);
	enforce(decision);
	const { signal } = call;
	const history = await context.histories.history(id, { consistency, signal });
	checkStored(history.versions[0], { type, id, access, decision });

	const readFilter = new ReadFilter(context.registry, access);
	const slices = new Slices(context.runtime, call);
	const page = new ResponsePage(limit);
	const shown: StoredVersion[] = [];
	let isAnyVisible = false;
	let isBefore = request.beforeVersion === "";
	let hasMore = false;
	// No further than the page: the rights on a version may depend on its data, which is decoded for that.
	for (const version of history.versions) {
		if (slices.isOver()) {
			await slices.next();
		}
		if (!(isOf(version.resource, id) && readFilter.allows(version.resource))) {
			continue;
		}
		isAnyVisible = true;
		if (!isBefore) {
			isBefore = version.version === request.beforeVersion;
		} else if (page.add(version.resource)) {
			shown.push(version);
		} else {
			hasMore = true;
			break;
		}
	}
	if (!isAnyVisible) {
		throw await notFoundError(context.backend, id, Code.NotFound);
	}
	if (!isBefore) {
		throw unknownVersion(request.beforeVersion);
	}
	const formOf = context.jsonForms.formFor(call);
	return {
		$typeName: "plinth.history.v1.ListVersionsResponse",
		versions: shown.map((version) => messageOf(version, formOf)),
		hasMore,
		completeSinceVersion: history.sinceVersion,
		completeSince: timestampFromMs(history.sinceMs),
		includesCreation: shown.at(-1)?.change === "created",
	};
}

function checkLimit(limit: number): number {
	if (limit > resourceServiceLimits.pageSize) {
		throw malformed(
			"limit",
			`must be at most ${resourceServiceLimits.pageSize.toLocaleString("en")}, got: ${limit}`,
		);
	}
	return limit || defaultLimit;
}

function unknownVersion(named: string): ConnectError {
	return new ConnectError(
		`version ${named.slice(0, 100)} is not known any more: list the versions without before_version`,
		Code.OutOfRange,
	);
}

/** Fails as a Read of the stored resource would. */
function checkStored(
	newest: StoredVersion | undefined,
	{
		type,
		id,
		access,
		decision,
	}: {
		readonly type: ResourceType;
		readonly id: ID;
		readonly access: Access;
		readonly decision: Decision;
	},
): void {
	if (newest === undefined || newest.change === "deleted" || !isOf(newest.resource, id)) {
		return;
	}
	const { resource } = newest;
	if (id.type !== undefined && resource.id?.type?.groupVersion !== id.type.groupVersion) {
		throw new GroupVersionMismatch(id.type, resource);
	}
	if (decision.kind === "needs-resource") {
		enforceWithResource(decideOnStored(decideRead, type, access, id, resource), id);
	}
}

/** Whether the resource is of the incarnation that the ID names, if it names one. */
function isOf(resource: Resource, { uid }: ID): boolean {
	return uid === "" || resource.id?.uid === uid;
}

function messageOf(
	{ change, version, resource, atMs, writtenBy }: StoredVersion,
	formOf: (resource: Resource) => Resource,
): ResourceVersion {
	const writtenMs = atMs ?? lastWriteMs(resource);
	return {
		$typeName: "plinth.history.v1.ResourceVersion",
		change: changes[change],
		version,
		resource: formOf(resource),
		...(writtenMs !== undefined && { writtenAt: timestampFromMs(writtenMs) }),
		writtenBy: writtenBy ?? "",
	};
}

const changes: Readonly<Record<VersionChange, Change>> = {
	created: Change.CREATED,
	updated: Change.UPDATED,
	deleted: Change.DELETED,
	unknown: Change.UNSPECIFIED,
};
