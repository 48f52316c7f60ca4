import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	DescribeHoldersRequest_TargetSchema,
	type DescribeHoldersResponse_Holders,
	type Holder,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { Deployed, ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Caller } from "@plinth/resource";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { forwarded } from "../protocol/forwarded-callers.ts";
import { routeTo } from "../protocol/holder-query.ts";
import { displayDeployed } from "../shadow/shadow.ts";
import { isSuccessionPending, responsibleUid } from "../succession/successors.ts";
import { localHolders } from "./local-holders.ts";

/** A resource whose holders are to be found, and the deployments that may have some. */
export interface HeldResource {
	readonly key: ResourceKey;
	readonly uid: string;
	readonly holders: readonly Deployed[];
	/** The deployment that stores it, and what it owns. */
	readonly home: Deployed;
}

/** A holder, and the deployment that stores it. */
export interface FoundHolder {
	readonly holder: Holder;
	readonly home: Deployed;
}

/** What is known of the holders of a resource. */
export interface FoundHolders {
	readonly holders: readonly FoundHolder[];
	/** The deployments that could not be asked, each with the reason. */
	readonly unknown: readonly string[];
	readonly hasMore: boolean;
}

/** How many targets a request names. */
const targetsPerRequest = 100;

/**
 * Finds the holders of resources in all deployments, with one call for many resources of a deployment.
 *
 * @param caller - the caller from whom holders are hidden that it may not read. Default: this deployment.
 * @param limit - how many holders are described by each call.
 * @param signal - ends the search, which then rejects.
 */
export async function allHolders(
	context: ConstraintContext,
	resources: readonly HeldResource[],
	caller: Caller | undefined,
	limit: number,
	signal: AbortSignal,
): Promise<readonly FoundHolders[]> {
	const found = resources.map(() => ({
		holders: [] as FoundHolder[],
		unknown: [] as string[],
		hasMore: false,
	}));
	const { environment } = context;
	const asked = new Map<string, { readonly deployed: Deployed; readonly at: Set<number> }>();
	for (const [at, { holders, home }] of resources.entries()) {
		for (const deployed of [home, ...holders]) {
			const uid = responsibleUid(environment, deployed.uid);
			const known = asked.get(uid) ?? { deployed, at: new Set<number>() };
			asked.set(uid, known);
			known.at.add(at);
		}
	}
	await Promise.all(
		[...asked].map(async ([uid, { deployed, at }]) => {
			const positions = [...at];
			for (let from = 0; from < positions.length; from += targetsPerRequest) {
				const some = positions.slice(from, from + targetsPerRequest);
				const targets = some.flatMap((each) => resources[each] ?? []);
				const described = await describe(context, uid, targets, caller, limit, signal).catch(
					(failure: unknown) => unreachable(context, deployed, failure),
				);
				signal.throwIfAborted();
				for (const [i, position] of some.entries()) {
					const result = found[position];
					if (result === undefined) {
						continue;
					}
					if (typeof described === "string") {
						result.unknown.push(described);
					} else {
						const holders = described[i]?.holders ?? [];
						result.holders.push(...holders.map((holder) => ({ holder, home: deployed })));
						result.hasMore ||= described[i]?.hasMore ?? false;
					}
				}
			}
		}),
	);
	return found;
}

async function describe(
	context: ConstraintContext,
	uid: string,
	resources: readonly HeldResource[],
	caller: Caller | undefined,
	limit: number,
	signal: AbortSignal,
): Promise<readonly DescribeHoldersResponse_Holders[]> {
	const { environment, limits } = context;
	const targets = resources.map(({ key, uid }) => ({ key, uid }));
	if (isSuccessionPending(environment, uid)) {
		throw new ConnectError(
			"its successor has not established yet what it references",
			Code.Unavailable,
		);
	}
	if (uid === environment.self.uid) {
		const shows = caller && ((holder: Parameters<Caller["mayRead"]>[0]) => caller.mayRead(holder));
		const messages = targets.map((each) => create(DescribeHoldersRequest_TargetSchema, each));
		return localHolders(context, messages, shows, limit, signal);
	}
	const { targets: described } = await environment
		.client(uid)
		.describeHolders(
			{ route: routeTo(context, uid), targets, caller: forwarded(caller), limit },
			{ timeoutMs: limits.callTimeoutMs, signal },
		);
	return described;
}

/** A deployment that was deleted holds nothing. Of any other one that is not reached, it is not known what it holds. */
async function unreachable(
	{ environment }: ConstraintContext,
	deployed: Deployed,
	failure: unknown,
): Promise<readonly DescribeHoldersResponse_Holders[] | string> {
	const isDeleted = await environment.isDeleted(deployed.uid).catch(() => false);
	return isDeleted ? [] : reasonOf(deployed, failure);
}

function reasonOf(deployed: Deployed, failure: unknown): string {
	const { code, rawMessage } = ConnectError.from(failure);
	const reason =
		code === Code.Unimplemented
			? "it runs a version that can't tell"
			: `not reached: ${rawMessage}`;
	return `${displayDeployed(deployed)} (${reason})`;
}
