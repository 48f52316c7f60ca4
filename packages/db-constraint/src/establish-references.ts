import { Code, ConnectError } from "@connectrpc/connect";
import type { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Caller } from "@plinth/resource";
import { Refused } from "@plinth/storage";
import type { ConstraintContext } from "./constraint-context.ts";
import type { DeploymentInfo } from "./environment.ts";
import { forwarded } from "./forwarded-callers.ts";
import { routeTo } from "./holder-query.ts";
import { displayKey, keyString } from "./resource-key.ts";
import { RetryableConflict } from "./retryable-conflict.ts";
import { deployedOf, displayDeployed, mergeRules } from "./shadow.ts";

/** What a resource names that another deployment keeps. */
export interface ForeignTarget {
	/** The field that names it. */
	readonly path: string;
	readonly target: ResourceKey;
	/** The version of its type by which it is named. */
	readonly groupVersion: string;
	/** Whether the resource that names it is in another namespace or partition. */
	readonly isElsewhere: boolean;
	readonly deployment: DeploymentInfo;
}

/** A reference to a resource of another deployment that is not there yet. */
export interface ForeignReference extends ForeignTarget {
	readonly rule: OnDelete;
}

/** What the target's deployment said. */
export interface Establishment {
	readonly uid: string;
	readonly number: bigint;
	readonly deployment: DeploymentInfo;
}

/**
 * Has the targets' deployments put tentative sources on their shadows: one call a deployment, each
 * of all its targets or none. The guards of the targets must have been read before.
 *
 * @param caller - on whose behalf, which the targets' deployments decide on; absent: on that of this
 *   deployment.
 * @param toleratesMissing - whether targets that are missing or being deleted are left out of the answer.
 * @returns by `keyString` of the target.
 * @throws Busy where a target is about to be deleted; Refused PermissionDenied where the caller may not name
 *   one, FailedPrecondition where one is missing or being deleted, ResourceExhausted where their deployment
 *   has no room, Unavailable where one can't be reached.
 */
export async function establish(
	context: ConstraintContext,
	references: readonly ForeignReference[],
	caller: Caller | undefined,
	toleratesMissing = false,
): Promise<ReadonlyMap<string, Establishment>> {
	if (toleratesMissing) {
		return establishEach(context, references);
	}
	const byDeployment = Map.groupBy(references, ({ deployment }) => deployment.uid);
	const established = new Map<string, Establishment>();
	await Promise.all(
		[...byDeployment].map(async ([uid, group]) => {
			const targets = [...Map.groupBy(group, ({ target }) => keyString(target))];
			const { established: answers } = await call(context, group, () =>
				context.environment.client(uid).establishReferences(
					{
						route: routeTo(context, uid),
						targets: targets.flatMap(([, same]) =>
							same[0] === undefined
								? []
								: [
										{
											key: same[0].target,
											rules: mergeRules(same.map(({ rule }) => rule)),
											groupVersion: same[0].groupVersion,
											elsewhere: same[0].isElsewhere,
										},
									],
						),
						caller: forwarded(caller),
					},
					{ timeoutMs: context.limits.callMs },
				),
			);
			for (const [i, [key, same]] of targets.entries()) {
				const answer = answers[i];
				if (answer === undefined || same[0] === undefined) {
					throw new Refused(Code.Unavailable, "the deployment of a target gave no answer");
				}
				const { deployment } = same[0];
				established.set(key, { uid: answer.uid, number: answer.establishment, deployment });
			}
		}),
	);
	return established;
}

/** One call a target, so that one which is missing does not keep the others from being established. */
async function establishEach(
	context: ConstraintContext,
	references: readonly ForeignReference[],
): Promise<ReadonlyMap<string, Establishment>> {
	const all = new Map<string, Establishment>();
	for (const same of Map.groupBy(references, ({ target }) => keyString(target)).values()) {
		try {
			for (const [key, established] of await establish(context, same, undefined)) {
				all.set(key, established);
			}
		} catch (failure) {
			if (!(failure instanceof Refused && failure.code === Code.FailedPrecondition)) {
				throw failure;
			}
		}
	}
	return all;
}

/**
 * Has the targets' deployments decide whether the caller may name them, and changes nothing. A deployment
 * whose server is older than that decides nothing, as it does where references are established.
 *
 * @throws Refused PermissionDenied where the caller may not name one, Unavailable where their deployment
 *   can't be reached.
 */
export async function authorize(
	context: ConstraintContext,
	targets: readonly ForeignTarget[],
	caller: Caller,
): Promise<void> {
	const byDeployment = Map.groupBy(targets, ({ deployment }) => deployment.uid);
	await Promise.all(
		[...byDeployment].map(([uid, group]) =>
			call(context, group, async () => {
				try {
					await context.environment.client(uid).authorizeReferences(
						{
							route: routeTo(context, uid),
							targets: group.map(({ target, groupVersion, isElsewhere }) => ({
								key: target,
								groupVersion,
								elsewhere: isElsewhere,
							})),
							caller: forwarded(caller),
						},
						{ timeoutMs: context.limits.callMs },
					);
				} catch (failure) {
					if (ConnectError.from(failure).code !== Code.Unimplemented) {
						throw failure;
					}
				}
			}),
		),
	);
}

/** Code and message by which a deployment says that a deletion is asking: try again. */
export const targetIsBeingChecked = "a deletion asks whether it may go";

async function call<T>(
	context: ConstraintContext,
	references: readonly ForeignTarget[],
	run: () => Promise<T>,
): Promise<T> {
	try {
		return await run();
	} catch (failure) {
		const error = ConnectError.from(failure);
		if (error.code === Code.Unavailable && error.rawMessage.includes(targetIsBeingChecked)) {
			throw new RetryableConflict(error.rawMessage);
		}
		if (error.code === Code.PermissionDenied) {
			// As a Read of the target is refused, whether or not there is one.
			throw new Refused(error.code, error.rawMessage);
		}
		const paths = references
			.map(({ path, target }) => `${path} (${displayKey(target)})`)
			.join(", ");
		if (error.code === Code.FailedPrecondition || error.code === Code.ResourceExhausted) {
			throw new Refused(error.code, `${paths}: ${error.rawMessage}`);
		}
		if (error.code === Code.InvalidArgument) {
			const problem = `${references.length} new references to one deployment`;
			throw new Refused(Code.ResourceExhausted, `${problem}: ${error.rawMessage}`);
		}
		const [first] = references;
		const where = first === undefined ? "" : displayDeployed(deployedOf(first.deployment));
		context.logger.debug({ err: error, where }, "references could not be established");
		throw new Refused(
			Code.Unavailable,
			`${paths}: ${where} can't be reached, nothing was written: ${error.rawMessage}`,
		);
	}
}
