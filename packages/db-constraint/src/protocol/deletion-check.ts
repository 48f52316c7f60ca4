import { Code } from "@connectrpc/connect";
import { Lifecycle, type Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { type CommitOptions, Refused } from "@plinth/storage";
import { isConflict } from "../commit/conflict.ts";
import { RetryableConflict } from "../commit/retryable-conflict.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { displayKey } from "../shadow/resource-key.ts";
import { displayDeployed, withoutDeployment } from "../shadow/shadow.ts";
import { putRecord, type StoredShadow, shadowOf } from "../shadow/shadow-records.ts";
import type { HolderDecision } from "./holder-decision.ts";
import type { HolderQuery, HolderResponse } from "./holder-query.ts";
import { blocksDeletion, isReleased } from "./holder-query.ts";

/** A deletion that no holder blocks. */
export interface DeletionCheck {
	/** The CHECKING shadow that preceded the holder queries. The commit of the deletion must replace exactly it. */
	readonly checking: StoredShadow;
	/** The shadow before the check, without the holders that have released the resource. */
	readonly left: Shadow;
}

/**
 * Queries all holders of a resource whether it may be deleted. A revert carries no fence: it is due whichever server controls the
 * shadow by then.
 *
 *     ACTIVE ──put──▶ CHECKING ──query holders──┬─ some block ──▶ ACTIVE as before, Refused
 *                                               └─ none does ──▶ the caller's commit replaces CHECKING
 *
 * @throws RetryableConflict if the shadow changed concurrently; Refused FailedPrecondition with the blockers
 *   that the caller may read and the number of the others.
 */
export async function checkDeletion(
	context: ConstraintContext,
	holderQuery: HolderQuery,
	stored: StoredShadow,
	{ dryRun = false, caller, fence }: Pick<CommitOptions, "dryRun" | "caller" | "fence">,
): Promise<DeletionCheck> {
	const checking = dryRun ? stored : await beginCheck(context, stored, fence);
	let responses: readonly HolderResponse[];
	try {
		responses = await holderQuery.all(checking, { dryRun, caller });
	} catch (failure) {
		await revertCheck(context, checking, stored.shadow);
		throw failure;
	}
	const blockers = responses.filter(blocksDeletion);
	if (blockers.length > 0) {
		await revertCheck(context, checking, stored.shadow);
		throw refusal(stored, blockers);
	}
	const left = responses
		.filter(isReleased)
		.reduce((shadow, { deployment }) => withoutDeployment(shadow, deployment.uid), stored.shadow);
	return { checking, left };
}

async function beginCheck(
	{ backend, runtime }: ConstraintContext,
	{ name, resource, shadow }: StoredShadow,
	fence: CommitOptions["fence"],
): Promise<StoredShadow> {
	const put = putRecord(runtime, name, resource, {
		case: "shadow",
		value: { ...shadow, lifecycle: Lifecycle.CHECKING },
	});
	try {
		const { resources } = await backend.commit([put], { fence });
		const stored = resources[0] && shadowOf(resources[0]);
		if (stored === undefined) {
			throw new Error(`the storage did not return the shadow ${name} that it stored`);
		}
		return stored;
	} catch (failure) {
		if (isConflict(failure)) {
			throw new RetryableConflict("the shadow changed before the deletion could be checked");
		}
		throw failure;
	}
}

/**
 * Reverts a CHECKING shadow to its previous state. If that fails, it was reverted already, or the storage
 * can't be reached; then the owned-pending handler reverts it.
 */
export async function revertCheck(
	{ backend, runtime, logger }: ConstraintContext,
	checking: StoredShadow,
	before: Shadow,
): Promise<void> {
	if (checking.shadow.lifecycle !== Lifecycle.CHECKING) {
		return;
	}
	const put = putRecord(runtime, checking.name, checking.resource, {
		case: "shadow",
		value: { ...before, lifecycle: Lifecycle.ACTIVE },
	});
	try {
		await backend.commit([put]);
	} catch (failure) {
		logger.debug(
			{ err: failure, shadow: checking.name },
			"the check of a deletion was not reverted",
		);
	}
}

function refusal({ shadow }: StoredShadow, blockers: readonly HolderResponse[]): Refused {
	const reasons = blockers.map((each) => {
		const where = displayDeployed(each.deployment);
		if (each.kind === "unknown") {
			return `${where} may reference it and can't be queried (${each.reason})`;
		}
		return `it is referenced by ${displayBlockers(each.decision, where)}`;
	});
	const what = shadow.resource === undefined ? "the resource" : displayKey(shadow.resource);
	return new Refused(Code.FailedPrecondition, `${what} can't be deleted: ${reasons.join("; ")}`);
}

/** The blockers that may be named, and the number of the others. */
function displayBlockers(
	{ blockers, hidden }: Pick<HolderDecision, "blockers" | "hidden">,
	where: string,
): string {
	const names = blockers.map(displayKey).join(", ");
	if (hidden === 0) {
		return `${names || "resources"} of ${where}`;
	}
	const more = hidden === 1 ? "resource" : "resources";
	return names === ""
		? `${hidden} ${more} of ${where} that you may not read`
		: `${names} of ${where} and ${hidden} more ${more} there that you may not read`;
}
