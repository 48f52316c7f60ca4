import { Code } from "@connectrpc/connect";
import type { Follower } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { Refused } from "@plinth/storage";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { deployedOf, displayDeployed } from "../shadow/shadow.ts";
import { ResourceShadow, shadowOf } from "../shadow/shadow-records.ts";

type Context = Pick<
	ConstraintContext,
	"backend" | "descriptor" | "environment" | "dropped" | "logger"
>;

/** A type that a schema no longer serves, and a deployment that references it. */
interface DroppedType {
	readonly type: string;
	readonly follower: Follower;
}

/**
 * Refuses a schema that no longer serves a type which other deployments reference. Their references would stay, but they
 * could make no new ones.
 *
 * Deployments that were deleted or taken over do not count, nor do those that neither import this service any longer nor
 * reference anything here. Those of this service are updated with this one, in any order: they count only if they
 * reference the type in none of the versions that are left.
 *
 * @param served - the types that the active schema serves.
 * @throws Refused FailedPrecondition, which names the types and the deployments.
 */
export async function assertNoneDropped(
	context: Context,
	served: readonly string[],
	followers: readonly Follower[],
): Promise<void> {
	const inUse = await droppedTypes(context, served, followers);
	if (inUse.length > 0) {
		throw new Refused(
			Code.FailedPrecondition,
			`${displayInUse(context, inUse)}. Update these deployments first, or start this server with --drop-versions-in-use: then they can make no new references by these versions. Nothing was changed`,
		);
	}
}

/** Like `assertNoneDropped`, but only logs what is in use. */
export async function warnOfDropped(
	context: Context,
	served: readonly string[],
	followers: readonly Follower[],
): Promise<void> {
	const inUse = await droppedTypes(context, served, followers);
	if (inUse.length > 0) {
		context.logger.warn(
			{ types: inUse.map(({ type }) => type) },
			`${displayInUse(context, inUse)}: these can make no new references by them`,
		);
	}
}

async function droppedTypes(
	context: Context,
	served: readonly string[],
	followers: readonly Follower[],
): Promise<readonly DroppedType[]> {
	const { descriptor, environment } = context;
	const left = new Set(descriptor.servedTypes);
	const dropped = new Set(served.filter((type) => !left.has(type)));
	const inUse = followers.flatMap((follower) => {
		const isOwn = follower.deployment?.service === environment.self.service;
		const isLeft = (type: string) =>
			isOwn && follower.types.some((each) => left.has(each) && familyOf(each) === familyOf(type));
		return follower.types.flatMap((type) =>
			dropped.has(type) && !isLeft(type) ? [{ type, follower }] : [],
		);
	});
	const counting = new Set<Follower>();
	await Promise.all(
		[...new Set(inUse.map((each) => each.follower))].map(async (follower) => {
			if ((await exists(context, follower)) && (await follows(context, follower))) {
				counting.add(follower);
			}
		}),
	);
	return inUse.filter(({ follower }) => counting.has(follower));
}

/** Whether the deployment may exist, and no other one has taken over from it. */
async function exists(
	{ environment, dropped }: Context,
	{ deployment }: Follower,
): Promise<boolean> {
	const uid = deployment?.uid ?? "";
	const successor = environment.successorOf(uid);
	if ((successor !== undefined && successor.uid !== uid) || (await dropped.isRefusedNow(uid))) {
		return false;
	}
	try {
		// What this server knows of it may be from before its start.
		return !(await environment.isDeleted(uid));
	} catch {
		return true;
	}
}

/** Whether the deployment references resources of this one, or may: then it names its types whenever it connects. */
async function follows(
	{ backend, environment }: Context,
	{ deployment }: Follower,
): Promise<boolean> {
	const uid = deployment?.uid ?? "";
	const { self } = environment;
	if (deployment?.service === self.service || environment.imports?.(uid, self.service) !== false) {
		return true;
	}
	const { resources } = await backend.list(
		{ type: ResourceShadow.type, tenancy: { partition: "", namespace: "" }, namePrefix: "s-" },
		{ consistency: "strong" },
	);
	return resources.some((each) =>
		shadowOf(each)?.shadow.sources.some((source) => source.deployment?.uid === uid),
	);
}

function displayInUse(
	{ environment }: Pick<Context, "environment">,
	inUse: readonly DroppedType[],
): string {
	const byType = Map.groupBy(inUse, ({ type }) => type);
	const uses = [...byType].map(([type, each]) => {
		const where = each.map(({ follower: { deployment } }) => {
			const name = environment.byUid(deployment?.uid ?? "")?.name || deployment?.uid;
			return `${displayDeployed(deployment)} (${name})`;
		});
		return `${type}, which is referenced by ${where.join(" and ")}`;
	});
	const own = displayDeployed(deployedOf(environment.self));
	return `this server has no modules that serve what ${own} has served: ${uses.join("; ")}`;
}

/** The name of a type without its version: `iam.Project` for `iam.v1.Project`. */
function familyOf(type: string): string {
	const parts = type.split(".");
	return [...parts.slice(0, -2), parts.at(-1)].join(".");
}
