import { Code } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import type { MetaOwner, ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import {
	allowed,
	type Caller,
	type Decision,
	isCrossTenancy,
	type TenancyLike,
} from "@plinth/resource";
import { Refused } from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { enforce, namedTarget } from "../protocol/authorize-targets.ts";
import type { ForeignTarget } from "../protocol/establish-references.ts";
import type { LocatedReference } from "../schema/locate-references.ts";
import { metaOwnersOf, sameOwner } from "../schema/owner-references.ts";
import { displayKey, keyString, nameOfKey } from "../shadow/resource-key.ts";

/**
 * Authorizes the caller of a commit to name the targets and owners of a resource: one decision for each one
 * that the stored resource does not name, by name, before the target is read. Other deployments decide on
 * the targets that they store. Without a caller the deployment itself commits, and nothing is decided.
 */
export class ReferenceAuthorization {
	readonly #context: ConstraintContext;
	readonly #caller: Caller | undefined;
	readonly #stored: Resource | undefined;
	readonly #tenancy: TenancyLike;
	readonly #decisions = new Map<string, Decision>();

	constructor(
		context: ConstraintContext,
		caller: Caller | undefined,
		resource: Resource,
		stored: Resource | undefined,
	) {
		this.#context = context;
		this.#caller = caller;
		this.#stored = stored;
		this.#tenancy = resource.id?.tenancy ?? {};
	}

	/** Whether there is a caller to authorize. */
	get isNeeded(): boolean {
		return this.#caller !== undefined;
	}

	/** @throws Refused PermissionDenied if the caller may not name the target. */
	enforce(reference: LocatedReference): void {
		enforce(this.#decide(reference));
	}

	/** Like `enforce`, by the stored resource if the name was not sufficient. */
	enforceWith(reference: LocatedReference, stored: Resource): void {
		if (this.#decide(reference).kind === "needs-resource") {
			enforce(this.#caller?.decideReference(this.#target(reference), stored) ?? allowed);
		}
	}

	/** Whether the caller may name the target, by its name alone. */
	allows(reference: LocatedReference): boolean {
		return this.#decide(reference).kind === "allowed";
	}

	/** Whether a target is in another namespace or partition. */
	isCrossTenancy(target: ResourceKey): boolean {
		return isCrossTenancy(target, this.#tenancy);
	}

	/**
	 * Decides on a new owner.
	 *
	 * @returns the owner, if another deployment must decide.
	 * @throws Refused PermissionDenied if the caller may not name it; FailedPrecondition or Unavailable if no
	 *   deployment is known that could decide.
	 */
	async enforceOwner(metaOwner: MetaOwner): Promise<ForeignTarget | undefined> {
		const { owner, ownerUid, version } = metaOwner;
		const caller = this.#caller;
		if (caller === undefined || owner === undefined || this.#hadOwner(metaOwner)) {
			return undefined;
		}
		const { backend, descriptor, environment } = this.#context;
		const service = descriptor.serviceOfGroup(owner.group);
		const ownerDeployment = environment.findOwner(owner.group, service, owner.region);
		if (ownerDeployment === undefined && environment.self.name !== "") {
			throw this.#unknownOwnerDeployment(owner);
		}
		if (ownerDeployment !== undefined && ownerDeployment.uid !== environment.self.uid) {
			return {
				path: "resource.owner_references",
				target: owner,
				groupVersion: version,
				isCrossTenancy: this.isCrossTenancy(owner),
				deployment: ownerDeployment,
			};
		}
		const target = namedTarget(owner, version, this.#tenancy);
		const decision = caller.decideReference(target);
		enforce(decision);
		if (decision.kind === "needs-resource") {
			const stored = await backend.lookup(nameOfKey(owner), { consistency: "strong" });
			if (stored?.id?.uid === ownerUid) {
				enforce(caller.decideReference(target, stored));
			}
		}
		return undefined;
	}

	#hadOwner(owner: MetaOwner): boolean {
		return (
			this.#stored !== undefined &&
			metaOwnersOf(this.#context, this.#stored, []).some((each) => sameOwner(each, owner))
		);
	}

	#unknownOwnerDeployment(owner: ResourceKey): Refused {
		const problem = `resource.owner_references: no deployment is known that stores ${displayKey(owner)}`;
		return this.#context.environment.isComplete === false
			? new Refused(Code.Unavailable, `${problem} yet: a meta deployment can't be reached`)
			: new Refused(Code.FailedPrecondition, problem);
	}

	#decide(reference: LocatedReference): Decision {
		if (this.#caller === undefined) {
			return allowed;
		}
		const text = keyString(reference.target);
		let decision = this.#decisions.get(text);
		if (decision === undefined) {
			decision = this.#caller.decideReference(this.#target(reference));
			this.#decisions.set(text, decision);
		}
		return decision;
	}

	#target({ target, groupVersion }: LocatedReference) {
		return namedTarget(target, groupVersion, this.#tenancy);
	}
}
