import type { DeploymentRecord } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { TrackedResource } from "./tracked-resources.fixture.ts";

/** What a deployment stored last under a uid: what it has done until then, others may still act on. */
export interface LastState {
	/** By `keyString`. */
	readonly resources: ReadonlyMap<string, TrackedResource>;
	/** The uids of the incarnations that were DELETING. */
	readonly deleting: ReadonlySet<string>;
}

/**
 * The uids of a deployment, one after the other, as its storage and the meta deployment record them.
 *
 *     settled ──its storage is restored──────────────────┬─▶ restored ──┐
 *        │ ▲                                             │              │ all its references are
 *        │ └─────────────────────────────────────────────┼──────────────┤ established under a new uid
 *        ├────its Deployment is deleted──────────────────┴─▶ deleted ───┘
 *        └────and its servers have stopped permanently─────▶ gone
 */
export class Identity {
	state: "settled" | "restored" | "deleted" | "gone" = "settled";
	/** The current uid; empty before the registration. */
	uid = "";
	/** The uids that it has given up, or will. */
	readonly former = new Set<string>();
	/** The uids that Deployments had which were deleted. */
	readonly deleted = new Set<string>();
	/** What was stored under former uids, if not all of that is stored any longer. */
	readonly lastStates = new Map<string, LastState>();
	/** The uids of other deployments that its storage refuses: they were deleted, or their successor was relied on. */
	refused: ReadonlySet<string> = new Set();
	/** The deployments, by uid, that have established their references with this successor. */
	establishedBy: readonly string[] = [];

	/** Whether a source with this uid is one of the deployment. */
	isNamedBy(uid: string): boolean {
		return uid !== "" && (uid === this.uid || (this.state !== "settled" && this.former.has(uid)));
	}

	/** Whether the deployment has or had this uid. */
	has(uid: string): boolean {
		return uid !== "" && (uid === this.uid || this.former.has(uid));
	}

	/** Whether the deployment gives up its uid with this record, though it was neither restored nor deleted. */
	isGivenUp({ uid }: DeploymentRecord): boolean {
		return this.state === "settled" && this.uid !== "" && uid !== this.uid;
	}

	/** Takes over the record in the storage. Returns whether it has become settled. */
	recorded({ uid, established, establishedBy }: DeploymentRecord): boolean {
		if (this.uid !== "" && uid !== this.uid) {
			this.former.add(this.uid);
			this.state = this.state === "settled" ? "restored" : this.state;
		}
		this.uid = uid;
		this.establishedBy = this.former.has(uid) ? [] : establishedBy;
		const settles = this.state !== "settled" && uid !== "" && established && !this.former.has(uid);
		if (settles) {
			this.state = "settled";
		}
		return settles;
	}
}
