import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	type DescribeHoldersRequest_Target,
	type DescribeHoldersResponse_Holders,
	DescribeHoldersResponse_HoldersSchema,
	type Holder,
	HolderSchema,
} from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { Shadow } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { finalizersOf, isMarkedForDeletion } from "@plinth/resource";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { isInMarkedTenancy } from "../protocol/holder-decision.ts";
import { keyOf, nameOfKey } from "../shadow/resource-key.ts";
import { holders, referencesFinalizer, sameTarget, shadowName } from "../shadow/shadow.ts";

/** What a description of holders is read from. */
type HoldersContext = Pick<ConstraintContext, "backend" | "environment" | "index" | "runtime">;

/** After so many shadows, others get their turn on the event loop. */
const yieldEvery = 50;

/**
 * The resources of this deployment that hold the targets or that these own, as they are now. Nothing is promised of
 * them: it is a description, not a decision.
 *
 * @param shows - whether the caller may read a holder. Default: all.
 * @param limit - how many holders are described in all.
 * @param signal - ends the search, which then rejects.
 */
export async function localHolders(
	context: HoldersContext,
	targets: readonly DescribeHoldersRequest_Target[],
	shows: ((holder: Resource) => boolean) | undefined,
	limit: number,
	signal: AbortSignal,
): Promise<readonly DescribeHoldersResponse_Holders[]> {
	const described: DescribeHoldersResponse_Holders[] = [];
	let left = limit;
	let visited = 0;
	for (const target of targets) {
		const found: Holder[] = [];
		let hasMore = false;
		const byUid = new Map<string, Holder>();
		for (const shadow of shadowsHolding(context, target)) {
			visited += 1;
			if (visited % yieldEvery === 0) {
				await context.runtime.scheduler.turn();
				signal.throwIfAborted();
			}
			if (shadow === undefined) {
				continue;
			}
			if (left === 0) {
				hasMore = true;
				break;
			}
			const holder = await describe(context, shadow, target, shows);
			if (holder !== undefined) {
				found.push(holder);
				byUid.set(holder.uid, holder);
				left -= 1;
			}
		}
		for (const resource of await ownedBy(context, target, left + 1)) {
			const known = byUid.get(resource.id?.uid ?? "");
			if (known !== undefined) {
				known.isOwned = true;
			} else if (left === 0) {
				hasMore = true;
			} else {
				found.push(await describeOwned(context, resource, shows));
				left -= 1;
			}
		}
		described.push(create(DescribeHoldersResponse_HoldersSchema, { holders: found, hasMore }));
	}
	return described;
}

/**
 * Each shadow that holds the target once; those that block a deletion first, so that they are among those that are
 * described. `undefined` for each visit that finds none: there may be very many.
 */
function* shadowsHolding(
	{ index }: Pick<HoldersContext, "index">,
	{ key, uid }: DescribeHoldersRequest_Target,
): Iterable<Shadow | undefined> {
	if (key === undefined) {
		return;
	}
	const seen = new Set<string>();
	for (const isBlocking of [true, false]) {
		for (const { name, shadow } of index.referencing(key)) {
			const rules = usesOf(shadow, { key, uid }).map(({ rule }) => rule);
			const isNext = rules.length > 0 && rules.includes(OnDelete.BLOCK) === isBlocking;
			if (isNext) {
				seen.add(name);
			}
			yield isNext ? shadow : undefined;
		}
	}
	for (const { name, shadow } of index.ownedBy(key)) {
		yield !seen.has(name) && isOwnedBy(shadow, uid) ? shadow : undefined;
	}
}

/** What the target owns, if this deployment stores it. */
async function ownedBy(
	{ backend, environment }: Pick<HoldersContext, "backend" | "environment">,
	{ key, uid }: DescribeHoldersRequest_Target,
	limit: number,
): Promise<readonly Resource[]> {
	if (key === undefined || key.region !== environment.self.region) {
		return [];
	}
	const stored = await backend.lookup(nameOfKey(key));
	return stored?.id?.uid === uid ? backend.listByOwner(stored.id, { limit }) : [];
}

async function describeOwned(
	{ backend, index, environment }: HoldersContext,
	resource: Resource,
	shows: ((holder: Resource) => boolean) | undefined,
): Promise<Holder> {
	const { id } = resource;
	const key = id && keyOf(id, environment.self.region);
	const shadow = key && index.get(shadowName(key))?.shadow;
	return create(HolderSchema, {
		...(await descriptionOf(backend, resource, shows)),
		...(key && { resource: key }),
		uid: id?.uid ?? "",
		isOwned: true,
		ownerUids: resource.ownerReferences.map((each) => each.uid),
		outlivesOwners: resource.ownerReferences.some(({ unsetOnDelete }) => unsetOnDelete),
		holders: shadow !== undefined && shadow.uid === id?.uid ? [...holders(shadow)] : [],
	});
}

/** What is described of every holder. */
async function descriptionOf(
	backend: HoldersContext["backend"],
	resource: Resource,
	shows: ((holder: Resource) => boolean) | undefined,
) {
	return {
		isMarked: isMarkedForDeletion(resource),
		finalizers: finalizersOf(resource).filter((each) => each !== referencesFinalizer),
		yields: await isInMarkedTenancy(backend, resource),
		isHidden: shows?.(resource) === false,
	};
}

function usesOf(
	{ outgoing }: Shadow,
	{ key, uid }: Pick<DescribeHoldersRequest_Target, "key" | "uid">,
) {
	return outgoing.filter((each) => each.targetUid === uid && sameTarget(each.target, key));
}

function isOwnedBy({ metaOwners }: Shadow, uid: string): boolean {
	return metaOwners.some(({ ownerUid }) => ownerUid === uid);
}

async function describe(
	{ backend }: Pick<HoldersContext, "backend">,
	shadow: Shadow,
	target: DescribeHoldersRequest_Target,
	shows: ((holder: Resource) => boolean) | undefined,
): Promise<Holder | undefined> {
	const resource = shadow.resource && (await backend.lookup(nameOfKey(shadow.resource)));
	if (shadow.resource === undefined || resource?.id?.uid !== shadow.uid) {
		return undefined;
	}
	return create(HolderSchema, {
		resource: shadow.resource,
		uid: shadow.uid,
		uses: usesOf(shadow, target).map(({ path, rule }) => ({ path, rule })),
		isOwnee: isOwnedBy(shadow, target.uid),
		ownerUids: shadow.metaOwners.map(({ ownerUid }) => ownerUid),
		outlivesOwners: shadow.metaOwners.some(({ unsetOnDelete }) => unsetOnDelete),
		...(await descriptionOf(backend, resource, shows)),
		holders: [...holders(shadow)],
	});
}
