import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import {
	CheckMetaOwnersRequest_OwnershipSchema,
	type CheckMetaOwnersRequest_Ownership as Ownership,
	CheckMetaOwnersResponse_Verdict as Verdict,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { Backoff } from "@plinth/runtime";
import { isInherited, ownerDeployment } from "../controller/owner-deployments.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { routeTo } from "../protocol/holder-query.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import { keyString } from "../shadow/resource-key.ts";
import { shadowOf } from "../shadow/shadow-records.ts";

/** Of an owner of which is not known whether it is valid; also where a response lacks it. */
const unknown = Verdict.UNSPECIFIED;

/** The number of owners in one call. Each takes a commit of the successor: all of them have to fit into the timeout. */
const ownersPerCall = 50;

/**
 * Tells a successor which of its resources own resources of this deployment by what its predecessors have said: its backup may
 * be older than that. A query about an owner records this deployment as a holder, if the successor has the owner.
 *
 *     valid ──────▶ the successor deletes it only after this deployment has said "no"
 *     not valid ──▶ the successor does not have it
 *     not known ──▶ queried again, for `ownerGraceMs` after all were queried once
 *
 * After that time, an owner that is still "not known" holds up nothing: a successor that does not know its type never says
 * more, and deletes no such resources. Nothing is recorded here: the controllers query these owners too.
 *
 * @param shadows - all shadows of this deployment, read when no commit could record any longer what a predecessor has said.
 * @param assertIsResponsible - throws if the successor is not responsible for all that it has taken over. Then owners of its
 *   predecessors seem to be those of another deployment.
 * @throws ConnectError if the successor can't be reached. Retry.
 */
export async function claimOwners(
	context: ConstraintContext,
	shadows: readonly Resource[],
	successor: DeploymentInfo,
	signal: AbortSignal,
	assertIsResponsible: () => void,
): Promise<void> {
	const { limits, runtime } = context;
	const { maxRetryDelayMs: baseMs, requeryMs: maxMs } = limits;
	const { clock, random } = runtime;
	const backoff = new Backoff({ clock, random, baseMs, maxMs });
	const inherited = await inheritedOwners(context, shadows, successor, assertIsResponsible);
	let left = await queryAll(context, inherited, successor, signal);
	// The first queries of many owners take longer than this.
	const untilMs = clock.monotonic() + limits.ownerGraceMs;
	while (left.length > 0 && clock.monotonic() < untilMs) {
		await backoff.wait(signal);
		left = await queryAll(context, left, successor, signal);
	}
}

/**
 * What is owned by what a predecessor has confirmed, and the successor has not. One resource for each owner is enough, unless
 * the owner must reference it.
 */
async function inheritedOwners(
	context: ConstraintContext,
	shadows: readonly Resource[],
	successor: DeploymentInfo,
	assertIsResponsible: () => void,
): Promise<readonly Ownership[]> {
	const found = new Map<string, Ownership>();
	for (const stored of shadows) {
		await context.runtime.scheduler.turn();
		assertIsResponsible();
		const { metaOwners = [], resource: ownee, uid: owneeUid = "" } = shadowOf(stored)?.shadow ?? {};
		for (const each of metaOwners) {
			const { owner, ownerUid, requiresOwnerReference } = each;
			const isOf = ownerDeployment(context, each)?.uid === successor.uid;
			if (owner === undefined || ownee === undefined || !isOf || !isInherited(context, each)) {
				continue;
			}
			const by = requiresOwnerReference ? keyString(ownee) : "";
			const init = { owner, ownerUid, ownee, owneeUid, requiresOwnerReference };
			const ownership = create(CheckMetaOwnersRequest_OwnershipSchema, init);
			found.set(`${ownerUid} ${keyString(owner)} ${by}`, ownership);
		}
	}
	return [...found.values()];
}

/** Queries about all of them. Returns those of which the successor does not know whether they are valid. */
async function queryAll(
	context: ConstraintContext,
	ownerships: readonly Ownership[],
	{ uid }: DeploymentInfo,
	signal: AbortSignal,
): Promise<readonly Ownership[]> {
	const { environment, limits } = context;
	const left: Ownership[] = [];
	for (let at = 0; at < ownerships.length; at += ownersPerCall) {
		signal.throwIfAborted();
		const batch = ownerships.slice(at, at + ownersPerCall);
		const { verdicts } = await environment
			.client(uid)
			.checkMetaOwners(
				{ route: routeTo(context, uid), ownerships: batch },
				{ timeoutMs: limits.callTimeoutMs },
			);
		left.push(...batch.filter((_, i) => (verdicts[i] ?? unknown) === unknown));
	}
	return left;
}
