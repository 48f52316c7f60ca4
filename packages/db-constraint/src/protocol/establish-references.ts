import { Code, ConnectError } from "@connectrpc/connect";
import type { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Caller } from "@plinth/resource";
import { Refused } from "@plinth/storage";
import { RetryableConflict } from "../commit/retryable-conflict.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import type { DeploymentInfo } from "../registry/environment.ts";
import { schemaNumber } from "../schema/descriptor-record.ts";
import { displayKey, keyString } from "../shadow/resource-key.ts";
import { deployedOf, displayDeployed, mergeRules } from "../shadow/shadow.ts";
import { forwarded } from "./forwarded-callers.ts";
import { routeTo } from "./holder-query.ts";

/** A target or owner that another deployment stores. */
export interface ForeignTarget {
	/** The path of the field that names it. */
	readonly path: string;
	readonly target: ResourceKey;
	/** The version of its type that the field names. */
	readonly groupVersion: string;
	/** Whether the resource that names it is in another namespace or partition. */
	readonly isCrossTenancy: boolean;
	readonly deployment: DeploymentInfo;
}

/** A new reference to a resource of another deployment. */
export interface ForeignReference extends ForeignTarget {
	readonly rule: OnDelete;
	/** The incarnation that the reference names already, if it is established again because of a successor. */
	readonly heldUid?: string | undefined;
}

/** The response of the target's deployment. */
export interface Establishment {
	readonly uid: string;
	readonly number: bigint;
	readonly deployment: DeploymentInfo;
}

/**
 * What is established at once. References of one resource may name the same target, and hold incarnations of it in several
 * deployments: each gets the response about its own.
 */
export function establishmentKey({
	target,
	deployment,
	heldUid = "",
}: Pick<ForeignReference, "target" | "deployment" | "heldUid">): string {
	return `${keyString(target)} ${deployment.uid} ${heldUid}`;
}

/**
 * Calls the targets' deployments to put tentative sources on the shadows: one call per deployment, which
 * succeeds for all of its targets or for none. The guards of the targets must have been read before.
 *
 * @param caller - the caller whom the targets' deployments authorize. Default: this deployment.
 * @param toleratesMissing - whether to omit targets from the result that are missing, or being deleted and not held.
 * @returns the establishments by `establishmentKey`.
 * @throws RetryableConflict if the deletion of a target is being checked; Refused PermissionDenied if the caller
 *   may not name a target, FailedPrecondition if one is missing or being deleted, ResourceExhausted if its
 *   deployment has no room, Unavailable if a deployment can't be reached.
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
			const targets = [...Map.groupBy(group, establishmentKey)];
			const { established: results } = await call(context, group, async () =>
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
											elsewhere: same[0].isCrossTenancy,
											heldUid: same[0].heldUid ?? "",
										},
									],
						),
						caller: forwarded(caller),
						schema: await schemaNumber(context),
					},
					{ timeoutMs: context.limits.callTimeoutMs },
				),
			);
			for (const [i, [key, same]] of targets.entries()) {
				const result = results[i];
				if (result === undefined || same[0] === undefined) {
					throw new Refused(Code.Unavailable, "the deployment of a target sent no response");
				}
				const { deployment } = same[0];
				established.set(key, { uid: result.uid, number: result.establishment, deployment });
			}
		}),
	);
	return established;
}

/**
 * One call per target, and per deployment and incarnation that its references hold, so that a missing one does not
 * prevent the others from being established.
 *
 * A held target counts as missing only if its deployment says so: what is being deleted exists, and may not go before
 * its holders have released it. A server that is older than `held_uid` refuses it without a source. It must be updated.
 */
async function establishEach(
	context: ConstraintContext,
	references: readonly ForeignReference[],
): Promise<ReadonlyMap<string, Establishment>> {
	const all = new Map<string, Establishment>();
	for (const same of Map.groupBy(references, establishmentKey).values()) {
		try {
			for (const [key, established] of await establish(context, same, undefined)) {
				all.set(key, established);
			}
		} catch (failure) {
			if (!(failure instanceof Refused && failure.code === Code.FailedPrecondition)) {
				throw failure;
			}
			const [{ heldUid, deployment } = {}] = same;
			if (heldUid && deployment && !failure.message.endsWith(targetIsMissing)) {
				const where = displayDeployed(deployedOf(deployment));
				throw new Refused(
					Code.Unavailable,
					`${failure.message}, and a server there does not accept references to it that exist already: update ${where}`,
				);
			}
		}
	}
	return all;
}

/**
 * Calls the targets' deployments to authorize the caller to name the targets, without any change. A server
 * that does not implement this call yet authorizes nothing, neither here nor when references are established.
 *
 * @throws Refused PermissionDenied if the caller may not name a target, Unavailable if a deployment can't be
 *   reached.
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
							targets: group.map(({ target, groupVersion, isCrossTenancy }) => ({
								key: target,
								groupVersion,
								elsewhere: isCrossTenancy,
							})),
							caller: forwarded(caller),
						},
						{ timeoutMs: context.limits.callTimeoutMs },
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

/**
 * The message, with the code Unavailable, of a deployment that checks the deletion of a target. Servers of other
 * versions match this text: it must not change.
 */
export const targetIsBeingChecked = "a deletion asks whether it may go";

/**
 * The end of the message, with the code FailedPrecondition, of a deployment that does not have a target. Servers of
 * other versions match this text: it must not change.
 */
export const targetIsMissing = "does not exist";

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
			// Like the refusal of a Read, it must not reveal whether the target exists.
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
			`${paths}: ${where} can't be reached, and nothing was written: ${error.rawMessage}`,
		);
	}
}
