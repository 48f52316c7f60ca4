import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { finalizersOf, isMarkedForDeletion, Namespace, Partition } from "@plinth/resource";
import type { ConstraintContext } from "./constraint-context.ts";
import { type KeyLike, nameOfKey } from "./resource-key.ts";
import { mergeRules, referencesFinalizer } from "./shadow.ts";
import { lookup, type StoredShadow } from "./shadow-records.ts";

/** How this deployment references a target. */
export interface HolderDecision {
	/** The rules in use, the strictest first; none where nothing references it. */
	readonly rules: readonly OnDelete[];
	/** Whether something names it as one of its owners. */
	readonly owned: boolean;
	/** Some of those that reference it with BLOCK, for people: none that whoever asks may not read. */
	readonly blockers: readonly ResourceKey[];
	/** How many more reference it with BLOCK that whoever asks may not read. */
	readonly hidden: number;
}

/** How many blockers an answer names. */
const namedBlockers = 5;

/** How many blockers are looked at to find those that may be named, and to count the others. */
const examinedBlockers = 1_000;

/** What an answer is for. */
export interface DecisionOptions {
	/** Whether the target is being deleted for good: then one that holds it suffices for the answer. */
	readonly deleting?: boolean;
	/** Whether a blocker may be named; all may where it is absent. */
	readonly shows?: ((blocker: Resource) => boolean) | undefined;
}

/**
 * How this deployment references that incarnation of the target, by its index as it is. Whether the
 * answer is final is up to the caller: see `Guards`.
 */
export async function currentDecision(
	context: Pick<ConstraintContext, "backend" | "index">,
	target: KeyLike,
	targetUid: string,
	{ deleting = false, shows }: DecisionOptions = {},
): Promise<HolderDecision> {
	const { backend, index } = context;
	const rules = new Set<OnDelete>();
	const blockers: ResourceKey[] = [];
	let examined = 0;
	let hidden = 0;
	for (const { shadow } of index.referencing(target)) {
		const uses = rulesInto(shadow.outgoing, target, targetUid);
		// What is known already needs no other resource that says so: among thousands one is looked at.
		if (!uses.includes(OnDelete.BLOCK) && uses.every((rule) => rules.has(rule))) {
			continue;
		}
		const resource = uses.length > 0 ? await holderOf(backend, shadow) : undefined;
		if (resource === undefined) {
			continue;
		}
		const yields = uses.includes(OnDelete.BLOCK) && (await isInMarkedTenancy(backend, resource));
		for (const rule of uses) {
			rules.add(rule === OnDelete.BLOCK && yields ? OnDelete.CASCADE : rule);
		}
		if (uses.includes(OnDelete.BLOCK) && !yields && shadow.resource !== undefined) {
			examined += 1;
			if (shows !== undefined && !shows(resource)) {
				hidden += 1;
			} else if (blockers.length < namedBlockers) {
				blockers.push(shadow.resource);
			}
		}
		if (deleting || examined >= (shows === undefined ? namedBlockers : examinedBlockers)) {
			break;
		}
	}
	let owned = false;
	for (const { shadow } of index.ownedBy(target)) {
		if (owned) {
			break;
		}
		owned =
			shadow.metaOwners.some(({ ownerUid }) => ownerUid === targetUid) &&
			(await holderOf(backend, shadow)) !== undefined;
	}
	return { rules: mergeRules([...rules]), owned, blockers, hidden };
}

/**
 * The rules with which references go to that incarnation. One that is recorded without a uid had no target
 * when it was derived, and is none until it is established like a new one.
 */
function rulesInto(
	outgoing: StoredShadow["shadow"]["outgoing"],
	target: KeyLike,
	targetUid: string,
): readonly OnDelete[] {
	const into = outgoing.filter(
		(each) =>
			each.target?.name === target.name &&
			each.target.kind === target.kind &&
			each.target.group === target.group &&
			each.target.namespace === target.namespace &&
			each.target.partition === target.partition &&
			each.target.region === target.region &&
			each.targetUid === targetUid,
	);
	return mergeRules(into.map(({ rule }) => rule));
}

/**
 * The resource of a shadow, if it still counts: one that is past recall references nothing, or two
 * that reference each other would wait for each other for ever.
 */
async function holderOf(
	backend: ConstraintContext["backend"],
	shadow: StoredShadow["shadow"],
): Promise<Resource | undefined> {
	const resource = shadow.resource && (await lookup(backend, nameOfKey(shadow.resource)));
	return resource === undefined || resource.id?.uid !== shadow.uid || isPastRecall(resource)
		? undefined
		: resource;
}

/** Whether nothing but its own references keeps a resource from going: that is never taken back. */
export function isPastRecall(resource: Resource): boolean {
	const finalizers = finalizersOf(resource);
	return (
		isMarkedForDeletion(resource) &&
		finalizers.length > 0 &&
		finalizers.every((each) => each === referencesFinalizer)
	);
}

/** Whether the partition or the namespace of a resource is being deleted: then all in it must go. */
export async function isInMarkedTenancy(
	backend: ConstraintContext["backend"],
	{ id }: Pick<Resource, "id">,
): Promise<boolean> {
	const { partition = "", namespace = "" } = id?.tenancy ?? {};
	for (const [unit, name] of [
		[Partition, partition],
		[Namespace, namespace],
	] as const) {
		if (name === "") {
			continue;
		}
		const tenancy = unit === Partition ? {} : { partition };
		const stored = await lookup(backend, { type: unit.type, tenancy, name });
		if (stored !== undefined && isMarkedForDeletion(stored)) {
			return true;
		}
	}
	return false;
}
