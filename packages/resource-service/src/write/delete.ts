import type { HandlerContext } from "@connectrpc/connect";
import type { DeleteRequest, Resource } from "@plinth/proto";
import { type Consistency, NotFound, type Rebase } from "@plinth/storage";
import { authenticateCall } from "../access/authenticate-call.ts";
import {
	decideOnStored,
	decideWrite,
	enforce,
	enforceWithResource,
} from "../access/authorization.ts";
import { callerOf } from "../access/request-caller.ts";
import { writerOf } from "../access/writer.ts";
import { resourceNotFound } from "../errors/refusal.ts";
import { fenceOf } from "../requests/headers.ts";
import { refuseRegion } from "../requests/regions.ts";
import { checkId } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";
import { checkDeletable } from "../tenancy/tenancy-defaults.ts";
import { recordRefusal, recordWait } from "./deletion-events.ts";
import { decidesFinally } from "./final-refusal.ts";
import { isStoredAs, planDelete, replanDelete } from "./plan-write.ts";
import { retryConflicts } from "./retry-conflicts.ts";
import { refuseStaleVersion } from "./stale-version.ts";

/**
 * Deletes a resource, or marks it for deletion if it has finalizers.
 *
 * @returns the version of the commit; empty if there was nothing to do.
 */
export async function deleteResource(
	context: ServiceContext,
	request: DeleteRequest,
	call: HandlerContext,
): Promise<string> {
	const { type, id } = checkId(context, request.id, "id");
	refuseRegion(id);
	const access = await authenticateCall(context.authorizer, call);
	const decision = decideWrite(type, access, id);
	enforce(decision);
	checkDeletable(id);
	const caller = callerOf(context.registry, access, call);
	const writtenBy = writerOf(access, call);
	const options = { fence: fenceOf(call), caller, writtenBy, dryRun: request.dryRun };

	const isQueued = request.version === "" && !request.dryRun;

	function authorize(stored: Resource): void {
		if (decision.kind === "needs-resource") {
			enforceWithResource(decideOnStored(decideWrite, type, access, id, stored), id);
		}
	}
	const rebase: Rebase = decidesFinally((newest) => {
		if (newest === undefined || !isStoredAs(newest, id)) {
			return undefined;
		}
		authorize(newest);
		return replanDelete(context, newest);
	});

	/** The resource that the last attempt has tried to delete. */
	let target: Resource | undefined;
	const attempt = async (consistency: Consistency) => {
		let stored: Resource;
		try {
			stored = await context.backend.read(id, { consistency });
		} catch (failure) {
			if (failure instanceof NotFound) {
				return nothingToDo(consistency);
			}
			throw failure;
		}
		authorize(stored);
		refuseStaleVersion(request.version, stored);
		target = stored;
		const mutations = await planDelete(context, stored);
		if (mutations.length === 0) {
			return nothingToDo(consistency);
		}
		const commit = await context.backend.commit(mutations, {
			...options,
			...(isQueued && { rebase }),
		});
		if (request.dryRun) {
			return "";
		}
		recordWait(context.events, access, commit.resources[0]);
		return commit.version;
	};
	try {
		return await retryConflicts(context, call, { id, isQueued }, attempt);
	} catch (failure) {
		if (!request.dryRun) {
			recordRefusal(context.events, access, target, failure);
		}
		throw failure;
	}
}

/** Only a strong read proves that there is nothing to do. The retry makes one. */
function nothingToDo(consistency: Consistency): string {
	if (consistency === "eventual") {
		throw resourceNotFound();
	}
	return "";
}
