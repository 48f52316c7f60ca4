import { create } from "@bufbuild/protobuf";
import {
	CheckMetaOwnersRequest_OwnershipSchema,
	type CheckMetaOwnersRequest_Ownership as Ownership,
	CheckMetaOwnersResponse_Verdict as Verdict,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { MetaOwner } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { keyOfShadow } from "../commit/commit-plan.ts";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { Batcher } from "../protocol/batcher.ts";
import { checkOwnerships } from "../protocol/check-ownership.ts";
import { routeTo } from "../protocol/holder-query.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import { displayKey } from "../shadow/resource-key.ts";
import { deployedOf, displayDeployed } from "../shadow/shadow.ts";
import type { StoredShadow } from "../shadow/shadow-records.ts";
import { deploymentsInPlace, ownerDeployment } from "./owner-deployments.ts";

/** What is known about an owner reference. */
export interface OwnerFinding {
	/** `undefined` or UNSPECIFIED if it could not be found out. */
	readonly verdict: Verdict | undefined;
	/** The deployments whose responses decide, by uid: one if it is valid, none if it could not be found out. */
	readonly decidedBy: readonly string[];
	/** What is in the way of a verdict, for people; otherwise empty. */
	readonly problem: string;
}

/**
 * Queries the deployments of owners whether owner references are valid:
 *
 *     the deployment that has said so before, or its successor ──▶ its verdict counts
 *     not recorded, or deleted: all of the service in the region ──┬─ valid for one ─▶ valid
 *                                                                  ├─ not valid for all, and no meta deployment
 *                                                                  │  may know of more ─▶ not valid
 *                                                                  └─ else ─▶ not known
 *
 * A deployment other than the one that stores the owner has no such owner. So its "not valid" alone proves nothing.
 */
export class OwnerQuery {
	readonly #context: ConstraintContext;
	readonly #batchers = new Map<string, Batcher<Ownership, Verdict>>();

	constructor(context: ConstraintContext) {
		this.#context = context;
	}

	/** Queries about one owner of the resource of a shadow. Never rejects. */
	async ask(stored: StoredShadow, owner: MetaOwner): Promise<OwnerFinding> {
		const { environment } = this.#context;
		const known = ownerDeployment(this.#context, owner);
		if (known !== undefined && (known.uid === environment.self.uid || owner.deploymentUid !== "")) {
			return this.#askOne(stored, owner, known);
		}
		if (owner.deploymentUid !== "" && !(await this.#isDeleted(owner.deploymentUid))) {
			// Only the permanent record proves that an owner was deleted with its deployment.
			return unknown(noDeployment(owner));
		}
		// Before the calls: a deployment that becomes known during these is not among those that are queried.
		const isComplete = environment.isComplete !== false;
		const place = deploymentsInPlace(this.#context, owner.owner);
		const isNowhere = place.length === 0 && owner.deploymentUid === "";
		if (isNowhere && !isPlanted("give up an owner that no deployment is known to store")) {
			return unknown(noDeployment(owner));
		}
		const finding = await this.#askAll(stored, owner, place);
		return finding.verdict === Verdict.NOT_VALID &&
			!isComplete &&
			!isPlanted("give up an owner before all meta deployments were read")
			? unknown(
					`${nameOf(owner)}: some meta deployment can't be reached, which may know where it is`,
				)
			: finding;
	}

	/** The first one decides alone if it has the owner: mostly there is no other. */
	async #askAll(
		stored: StoredShadow,
		owner: MetaOwner,
		[first, ...others]: readonly DeploymentInfo[],
	): Promise<OwnerFinding> {
		const finding = first && (await this.#askOne(stored, owner, first));
		if (finding?.verdict === Verdict.VALID) {
			return finding;
		}
		const more = await Promise.all(others.map((each) => this.#askOne(stored, owner, each)));
		const findings = finding === undefined ? more : [finding, ...more];
		const decided =
			findings.find(({ verdict }) => verdict === Verdict.VALID) ??
			findings.find(({ verdict }) => verdict !== Verdict.NOT_VALID);
		return (
			decided ?? {
				verdict: Verdict.NOT_VALID,
				decidedBy: findings.flatMap(({ decidedBy }) => decidedBy),
				problem: "",
			}
		);
	}

	async #askOne(
		stored: StoredShadow,
		owner: MetaOwner,
		deployment: DeploymentInfo,
	): Promise<OwnerFinding> {
		const where = displayDeployed(deployedOf(deployment));
		if (this.#context.dropped.isRefused(deployment.uid)) {
			return unknown(
				`${nameOf(owner)}: ${where} no longer exists, and its successor is not known yet`,
			);
		}
		let verdict: Verdict;
		try {
			verdict = await this.#batcher(deployment.uid).submit(
				create(CheckMetaOwnersRequest_OwnershipSchema, {
					ownee: keyOfShadow(stored.shadow),
					owneeUid: stored.shadow.uid,
					ownerUid: owner.ownerUid,
					requiresOwnerReference: owner.requiresOwnerReference,
					...(owner.owner && { owner: owner.owner }),
				}),
			);
		} catch {
			return unknown(`${nameOf(owner)}: ${where} can't be queried`);
		}
		const isKnown = verdict !== Verdict.UNSPECIFIED;
		return {
			verdict,
			decidedBy: isKnown ? [deployment.uid] : [],
			problem: isKnown
				? ""
				: `${nameOf(owner)}: ${where} does not know this type, or has not derived its references yet`,
		};
	}

	async #isDeleted(uid: string): Promise<boolean> {
		return this.#context.environment.isDeleted(uid).catch(() => false);
	}

	#batcher(uid: string): Batcher<Ownership, Verdict> {
		const { environment, limits } = this.#context;
		let batcher = this.#batchers.get(uid);
		if (batcher === undefined) {
			batcher = new Batcher(async (ownerships) => {
				if (uid === environment.self.uid) {
					return checkOwnerships(this.#context, deployedOf(environment.self), ownerships);
				}
				const { verdicts } = await environment
					.client(uid)
					.checkMetaOwners(
						{ route: routeTo(this.#context, uid), ownerships: [...ownerships] },
						{ timeoutMs: limits.callTimeoutMs },
					);
				return verdicts;
			}, limits.batchSize);
			this.#batchers.set(uid, batcher);
		}
		return batcher;
	}
}

function unknown(problem: string): OwnerFinding {
	return { verdict: undefined, decidedBy: [], problem };
}

function noDeployment(each: MetaOwner): string {
	return `${nameOf(each)}: no deployment is known that stores ${each.owner?.group} in region "${each.owner?.region}"`;
}

function nameOf({ owner }: MetaOwner): string {
	return owner === undefined ? "an owner" : displayKey(owner);
}
