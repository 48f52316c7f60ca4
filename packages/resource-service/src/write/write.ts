import type { HandlerContext } from "@connectrpc/connect";
import type { Resource, WriteRequest } from "@plinth/proto";
import type { Access } from "@plinth/resource";
import { CasFailure, type CommitResult, type Rebase, WrongUid } from "@plinth/storage";
import { authenticateCall } from "../access/authenticate-call.ts";
import { mayRead, storedType } from "../access/authorization.ts";
import { callerOf } from "../access/request-caller.ts";
import { shownToWriter } from "../access/shown-to-writer.ts";
import { writerOf } from "../access/writer.ts";
import { alreadyExists } from "../errors/refusal.ts";
import { lookUp } from "../read/look-up.ts";
import { fenceOf } from "../requests/headers.ts";
import type { ServiceContext } from "../service-context.ts";
import { Candidate } from "./candidate.ts";
import { decidesFinally } from "./final-refusal.ts";
import { ownerDoesNotExist, planWrite, replanWrite, type WritePlan } from "./plan-write.ts";
import { retryConflicts } from "./retry-conflicts.ts";

/** Stores a resource, and returns it as stored. */
export function write(
	context: ServiceContext,
	{ resource, createOnly }: Pick<WriteRequest, "resource" | "createOnly">,
	call: HandlerContext,
): Promise<Resource> {
	return tryWrite(context, resource, call, { dryRun: false, createOnly }).then(
		({ candidate, access, plan, commit }) => {
			const stored = commit.resources[0] ?? { ...plan.resource, version: commit.version };
			return shownToWriter(candidate.type, access, stored);
		},
	);
}

/**
 * Checks and mutates a resource as a write would, including the checks of the storage, but stores nothing.
 * The uid, version and generation of the result are those that are stored now, so that the result can be
 * written as it is.
 */
export async function mutateAndValidate(
	context: ServiceContext,
	input: Resource | undefined,
	call: HandlerContext,
): Promise<Resource> {
	const { candidate, access, plan, stored } = await tryWrite(context, input, call, {
		dryRun: true,
		createOnly: false,
	});
	const { id } = plan.resource;
	const tried = {
		...plan.resource,
		...(id && { id: { ...id, uid: stored?.id?.uid ?? "" } }),
		version: stored?.version ?? "",
		generation: stored?.generation ?? "",
	};
	const mayReadStored =
		stored?.id === undefined ||
		mayRead(storedType(context.registry, candidate.type, stored), access, stored, stored.id);
	return shownToWriter(candidate.type, access, tried, mayReadStored);
}

/** A write that was committed, or that a dry run has checked. */
interface TriedWrite {
	readonly candidate: Candidate;
	readonly access: Access;
	readonly plan: WritePlan;
	readonly commit: CommitResult;
	/** The resource as stored before. */
	readonly stored: Resource | undefined;
}

async function tryWrite(
	context: ServiceContext,
	input: Resource | undefined,
	call: HandlerContext,
	{ dryRun, createOnly }: { readonly dryRun: boolean; readonly createOnly: boolean },
): Promise<TriedWrite> {
	const authenticated = authenticateCall(context.authorizer, call);
	// Most tokens are checked without waiting.
	const access = authenticated instanceof Promise ? await authenticated : authenticated;
	const caller = callerOf(context.registry, access, call);
	const candidate = new Candidate(context, access, caller, input);
	const fence = fenceOf(call);
	const writtenBy = writerOf(access, call);
	const isQueued = !dryRun && candidate.input.version === "";
	return retryConflicts(context, call, { id: candidate.id, isQueued }, async (consistency) => {
		const read = lookUp(context.backend, candidate.id, consistency);
		const stored = read instanceof Promise ? await read : read;
		if (createOnly && stored !== undefined) {
			throw alreadyExists(candidate.id);
		}
		const planning = planWrite(context, candidate, stored, consistency);
		const planned = planning instanceof Promise ? await planning : planning;
		let plan = planned;
		const rebase: Rebase = decidesFinally((newest) => {
			if (createOnly && newest !== undefined) {
				throw alreadyExists(candidate.id);
			}
			const next = replanWrite(context, candidate, planned, newest);
			plan = next ?? plan;
			return next?.mutations;
		});
		try {
			const commit = await context.backend.commit(plan.mutations, {
				...{ fence, caller, writtenBy, dryRun },
				rebase: isQueued ? rebase : undefined,
			});
			return { candidate, access, plan, commit, stored };
		} catch (failure) {
			const { owner } = candidate.input;
			throw owner && missesOwner(plan, failure) ? ownerDoesNotExist(owner) : failure;
		}
	});
}

function missesOwner({ ownerAssert }: WritePlan, failure: unknown): boolean {
	return (
		ownerAssert !== undefined &&
		(failure instanceof CasFailure || failure instanceof WrongUid) &&
		failure.mutations.includes(ownerAssert)
	);
}
