import { clone, create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, type HandlerContext } from "@connectrpc/connect";
import {
	type Condition,
	type ID,
	IDSchema,
	type Reference,
	type Resource,
	ResourceSchema,
	type Status,
	StatusSchema,
	type WriteStatusRequest,
} from "@plinth/proto";
import { hasNamespace, hasPartition, isUlid, labelProblem } from "@plinth/resource";
import { type Consistency, type Mutation, NotFound, type Rebase } from "@plinth/storage";
import { authenticateCall } from "../access/authenticate-call.ts";
import {
	decideOnStored,
	decideWrite,
	enforce,
	enforceWithResource,
} from "../access/authorization.ts";
import { callerOf } from "../access/request-caller.ts";
import { shownToWriter } from "../access/shown-to-writer.ts";
import { writerOf } from "../access/writer.ts";
import { got, invalidArgument, malformed, malformedValue, missing } from "../errors/refusal.ts";
import { fenceOf } from "../requests/headers.ts";
import { checkSize, resourceServiceLimits } from "../requests/limits.ts";
import { refuseRegion } from "../requests/regions.ts";
import { checkId, requireName, requireType, resolveType } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";
import { notFoundError } from "../tenancy/tenancy-check.ts";
import { refuseCopy } from "./copies.ts";
import { decidesFinally } from "./final-refusal.ts";
import { isStoredAs } from "./plan-write.ts";
import { retryConflicts } from "./retry-conflicts.ts";
import { refuseStaleVersion } from "./stale-version.ts";

/** Replaces one entry of a resource's status, and returns the resource as stored. */
export async function writeStatus(
	context: ServiceContext,
	request: WriteStatusRequest,
	call: HandlerContext,
): Promise<Resource> {
	const access = await authenticateCall(context.authorizer, call);
	const { type, id } = checkId(context, request.id, "id");
	refuseRegion(id);
	if (!id.uid) {
		throw missing("id.uid");
	}
	const { key } = request;
	const status = checkStatusRequest(context, request);
	const decision = decideWrite(type, access, id);
	enforce(decision);
	const options = {
		fence: fenceOf(call),
		caller: callerOf(context.registry, access, call),
		writtenBy: writerOf(access, call),
	};
	const isQueued = request.version === "";

	function replaceIn(stored: Resource): Mutation & { readonly resource: Resource } {
		if (decision.kind === "needs-resource") {
			enforceWithResource(decideOnStored(decideWrite, type, access, id, stored), id);
		}
		refuseCopy(stored);
		refuseStaleVersion(request.version, stored);
		const resource = create(ResourceSchema, {
			...stored,
			status: {
				...stored.status,
				[key]: { ...status, updatedAt: timestampFromMs(context.runtime.clock.now()) },
			},
		});
		checkStatusCount(resource);
		checkSize(resource);
		return { op: "put", resource, expectedVersion: stored.version, replaces: stored };
	}
	const rebase: Rebase = decidesFinally((newest) =>
		newest !== undefined && isStoredAs(newest, id) ? [replaceIn(newest)] : undefined,
	);

	return retryConflicts(context, call, { id, isQueued }, async (consistency) => {
		const put = replaceIn(await readOrExplain(context, id, consistency));
		const { resources } = await context.backend.commit([put], {
			...options,
			...(isQueued && { rebase }),
		});
		return shownToWriter(type, access, resources[0] ?? put.resource);
	});
}

async function readOrExplain(
	context: ServiceContext,
	id: ID,
	consistency: Consistency,
): Promise<Resource> {
	try {
		return await context.backend.read(id, { consistency });
	} catch (failure) {
		throw failure instanceof NotFound
			? await notFoundError(context.backend, id, Code.InvalidArgument)
			: failure;
	}
}

function checkStatusRequest(context: ServiceContext, request: WriteStatusRequest): Status {
	const { key, status } = request;
	if (!key) {
		throw missing("key");
	}
	if (!statusKeyPattern.test(key) || key === "__proto__") {
		throw malformedValue("key", `does not match ${statusKeyPattern.source}`, key);
	}
	if (status === undefined) {
		throw missing("status");
	}
	if (!status.observedGeneration) {
		throw missing("status.observed_generation");
	}
	if (!isUlid(status.observedGeneration)) {
		throw invalidArgument(
			`status.observed_generation is not valid. ${got(status.observedGeneration)}`,
		);
	}
	if (status.updatedAt !== undefined) {
		throw invalidArgument("status.updated_at is automatically set and cannot be provided");
	}
	if (status.conditions.length > resourceServiceLimits.conditionsPerStatus) {
		throw malformed(
			"status.conditions",
			`has ${status.conditions.length} entries, more than ${resourceServiceLimits.conditionsPerStatus}`,
		);
	}
	for (const [position, condition] of status.conditions.entries()) {
		checkCondition(context, condition, `status.conditions[${position}]`);
	}
	return clone(StatusSchema, status);
}

/** Checks the key of a status and its number of conditions. */
export function checkStatusParts(key: string, { conditions }: Pick<Status, "conditions">): void {
	if (!statusKeyPattern.test(key) || key === "__proto__") {
		throw malformedValue("key", `does not match ${statusKeyPattern.source}`, key);
	}
	if (conditions.length > resourceServiceLimits.conditionsPerStatus) {
		throw malformed(
			"status.conditions",
			`has ${conditions.length} entries, more than ${resourceServiceLimits.conditionsPerStatus}`,
		);
	}
}

const statusKeyPattern = /^[A-Za-z0-9./_-]{1,128}$/;

function checkCondition(context: ServiceContext, condition: Condition, path: string): void {
	if (!condition.type) {
		throw missing(`${path}.type`);
	}
	if (condition.resource !== undefined) {
		checkReference(context, condition.resource, `${path}.resource`);
	}
}

/** A reference in a status must be complete: nothing is filled in later. */
function checkReference(context: ServiceContext, reference: Reference, path: string): void {
	const type = resolveType(context.registry, requireType(reference.type, `${path}.type`));
	requireName(reference.name, `${path}.name`);
	if (reference.tenancy === undefined && hasPartition(type.scope)) {
		throw missing(`${path}.tenancy`);
	}
	for (const [unit, has] of [
		["partition", hasPartition(type.scope)],
		["namespace", hasNamespace(type.scope)],
	] as const) {
		const value = reference.tenancy?.[unit] ?? "";
		if (has && !value) {
			throw missing(`${path}.tenancy.${unit}`);
		}
		const problem = value ? labelProblem(value) : undefined;
		if (problem !== undefined) {
			throw malformedValue(`${path}.tenancy.${unit}`, problem, value);
		}
	}
	const { name, tenancy } = reference;
	checkId(
		context,
		create(IDSchema, {
			name,
			type: { ...type.type },
			...(tenancy && { tenancy }),
		}),
		path,
	);
}

function checkStatusCount(resource: Resource): void {
	const count = Object.keys(resource.status).length;
	if (count > resourceServiceLimits.statuses) {
		throw malformed(
			"key",
			`the resource would have ${count} statuses, more than ${resourceServiceLimits.statuses}`,
		);
	}
}
