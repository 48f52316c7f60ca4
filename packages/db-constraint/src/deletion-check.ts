import { Code } from "@connectrpc/connect";
import { Lifecycle, type Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { type CommitOptions, Refused } from "@plinth/storage";
import { isConflict } from "./conflict.ts";
import type { ConstraintContext } from "./constraint-context.ts";
import type { HolderDecision } from "./holder-decision.ts";
import type { HolderQuery, HolderResponse } from "./holder-query.ts";
import { blocks, isReleased } from "./holder-query.ts";
import { displayKey } from "./resource-key.ts";
import { RetryableConflict } from "./retryable-conflict.ts";
import { displayDeployed, withoutDeployment } from "./shadow.ts";
import { putRecord, type StoredShadow, shadowOf } from "./shadow-records.ts";

/** What a deletion may do, found out by asking all who hold the resource. */
export interface DeletionCheck {
	/** What the commit of the deletion must find: the very CHECKING that preceded the questions. */
	readonly checking: StoredShadow;
	/** The shadow as it was, without those who have let go. */
	readonly left: Shadow;
}

/**
 * Asks all who hold a resource whether it may be deleted.
 *
 *     ACTIVE ──put──▶ CHECKING ──ask all──┬─ somebody blocks ──▶ ACTIVE as it was, Refused
 *                                         └─ nobody does ──▶ the caller's commit, over CHECKING
 *
 * @throws Busy where the shadow changed meanwhile; Refused FailedPrecondition, naming who blocks as far as
 *   the caller may read it, and counting the others.
 */
export async function checkDeletion(
	context: ConstraintContext,
	holderQuery: HolderQuery,
	stored: StoredShadow,
	{ dryRun = false, caller }: Pick<CommitOptions, "dryRun" | "caller">,
): Promise<DeletionCheck> {
	const checking = dryRun ? stored : await beginCheck(context, stored);
	let answers: readonly HolderResponse[];
	try {
		answers = await holderQuery.all(checking, { dryRun, caller });
	} catch (failure) {
		await revertCheck(context, checking, stored.shadow);
		throw failure;
	}
	const blockers = answers.filter(blocks);
	if (blockers.length > 0) {
		await revertCheck(context, checking, stored.shadow);
		throw refusal(stored, blockers);
	}
	const left = answers
		.filter(isReleased)
		.reduce((shadow, { deployment }) => withoutDeployment(shadow, deployment.uid), stored.shadow);
	return { checking, left };
}

async function beginCheck(
	{ backend, runtime }: ConstraintContext,
	{ name, resource, shadow }: StoredShadow,
): Promise<StoredShadow> {
	const put = putRecord(runtime, name, resource, {
		case: "shadow",
		value: { ...shadow, lifecycle: Lifecycle.CHECKING },
	});
	try {
		const { resources } = await backend.commit([put]);
		const stored = resources[0] && shadowOf(resources[0]);
		if (stored === undefined) {
			throw new Error(`the storage did not answer the shadow ${name} that it stored`);
		}
		return stored;
	} catch (failure) {
		if (isConflict(failure)) {
			throw new RetryableConflict("the shadow changed before the deletion could ask");
		}
		throw failure;
	}
}

/**
 * Makes a CHECKING what it was before. Where that fails, the shadow has been taken back already, or
 * its storage can't be reached: then the owned-pending handler does it.
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
		logger.debug({ err: failure, shadow: checking.name }, "a deletion's check was not taken back");
	}
}

function refusal({ shadow }: StoredShadow, blockers: readonly HolderResponse[]): Refused {
	const reasons = blockers.map((each) => {
		const where = displayDeployed(each.deployment);
		if (each.kind === "unknown") {
			return `${where} may reference it and can't be asked (${each.why})`;
		}
		return `it is referenced by ${displayBlockers(each.answer, where)}`;
	});
	const what = shadow.resource === undefined ? "the resource" : displayKey(shadow.resource);
	return new Refused(Code.FailedPrecondition, `${what} can't be deleted: ${reasons.join("; ")}`);
}

/** Those that may be named, and how many others there are. */
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
