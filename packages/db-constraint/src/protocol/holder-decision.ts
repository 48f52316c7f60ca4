import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { finalizersOf, isMarkedForDeletion, Namespace, Partition } from "@plinth/resource";
import { isPlanted } from "../fault-points.ts";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { type KeyLike, nameOfKey } from "../shadow/resource-key.ts";
import { mergeRules, referencesFinalizer } from "../shadow/shadow.ts";
import type { StoredShadow } from "../shadow/shadow-records.ts";

/** Whether this deployment holds a resource: the response to a holder query. */
export interface HolderDecision {
	/** The rules of the references to the resource, strictest first; empty if nothing references it. */
	readonly rules: readonly OnDelete[];
	/** Whether some resource names it as an owner. */
	readonly owned: boolean;
	/** Some of the resources that reference it with BLOCK, for messages. Only those that the caller may read. */
	readonly blockers: readonly ResourceKey[];
	/** The number of further resources that reference it with BLOCK and that the caller may not read. */
	readonly hidden: number;
}

/** The maximum number of blockers that a decision names. */
const namedBlockers = 5;

/** The maximum number of blockers that are examined, to name those that may be read and count the others. */
const examinedBlockers = 1_000;

/** After so many shadows, others get their turn on the event loop. */
const yieldEvery = 200;

/** The purpose of a decision. */
export interface DecisionOptions {
	/** Whether the target is irrevocably being deleted. Then one resource that holds it decides. */
	readonly deleting?: boolean;
	/** Whether a blocker may be named. Default: all. */
	readonly shows?: ((blocker: Resource) => boolean) | undefined;
	/** Ends the decision, which then rejects. */
	readonly signal?: AbortSignal | undefined;
}

type DecisionContext = Pick<ConstraintContext, "backend" | "index" | "runtime">;

/**
 * Decides from the current index whether this deployment holds this incarnation of the target. The caller
 * is responsible for making the decision final: see `Guards`. The index may change meanwhile. It never goes back, so
 * that a decision covers what it contained when it began.
 */
export async function currentDecision(
	context: DecisionContext,
	target: KeyLike,
	targetUid: string,
	{ deleting = false, shows, signal }: DecisionOptions = {},
): Promise<HolderDecision> {
	const { backend, index } = context;
	const examinedAtMost = shows === undefined ? namedBlockers : examinedBlockers;
	const rules = new Set<OnDelete>();
	const blockers: ResourceKey[] = [];
	let examined = 0;
	let hidden = 0;
	let visited = 0;
	for (const { shadow } of index.referencing(target)) {
		visited += 1;
		if (visited % yieldEvery === 0) {
			await nextTurn(context, signal);
		}
		const uses = rulesInto(shadow.outgoing, target, targetUid);
		// Skip resources that can add no new rule: of thousands with the same rule, one is examined.
		const isBlocking = uses.includes(OnDelete.BLOCK);
		if (!isBlocking && uses.every((rule) => rules.has(rule))) {
			continue;
		}
		const resource = await holderOf(backend, shadow);
		if (resource === undefined) {
			continue;
		}
		const isYielding =
			isBlocking &&
			!isPlanted("still enforce BLOCK in a marked namespace") &&
			(await isInMarkedTenancy(backend, resource));
		for (const rule of countedRules(uses, isYielding)) {
			rules.add(rule);
		}
		if (isBlocking && !isYielding && shadow.resource !== undefined) {
			examined += 1;
			if (shows?.(resource) === false) {
				hidden += 1;
			} else if (blockers.length < namedBlockers) {
				blockers.push(shadow.resource);
			}
		}
		if (deleting || examined >= examinedAtMost) {
			break;
		}
	}
	const owned = await isOwner(context, target, targetUid, signal);
	return { rules: mergeRules([...rules]), owned, blockers, hidden };
}

/** The rules that count: in a tenancy that is being deleted, BLOCK is CASCADE. */
function countedRules(uses: readonly OnDelete[], isYielding: boolean): readonly OnDelete[] {
	return isYielding
		? uses.map((rule) => (rule === OnDelete.BLOCK ? OnDelete.CASCADE : rule))
		: uses;
}

/** Lets others have their turn. */
async function nextTurn(
	{ runtime }: DecisionContext,
	signal: AbortSignal | undefined,
): Promise<void> {
	await runtime.scheduler.turn();
	signal?.throwIfAborted();
}

/** Whether a resource of this deployment is owned by this incarnation of the target. */
async function isOwner(
	context: DecisionContext,
	target: KeyLike,
	targetUid: string,
	signal: AbortSignal | undefined,
): Promise<boolean> {
	const { backend, index } = context;
	let visited = 0;
	for (const { shadow } of index.ownedBy(target)) {
		visited += 1;
		if (visited % yieldEvery === 0) {
			await nextTurn(context, signal);
		}
		const names = shadow.metaOwners.some(({ ownerUid }) => ownerUid === targetUid);
		if (names && (await holderOf(backend, shadow)) !== undefined) {
			return true;
		}
	}
	return false;
}

/**
 * The rules of the references to this incarnation. A reference that is recorded without a uid had no target
 * when it was derived, and does not count until it is established like a new one.
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
 * The resource of a shadow, if it still counts. One whose deletion is irrevocable counts as referencing nothing:
 * otherwise two resources that reference each other would wait for each other forever.
 */
async function holderOf(
	backend: ConstraintContext["backend"],
	shadow: StoredShadow["shadow"],
): Promise<Resource | undefined> {
	const resource = shadow.resource && (await backend.lookup(nameOfKey(shadow.resource)));
	return resource === undefined ||
		resource.id?.uid !== shadow.uid ||
		(isDeletionIrrevocable(resource) &&
			!isPlanted("count references of resources that are irrevocably deleted"))
		? undefined
		: resource;
}

/** Whether a resource is marked and only the finalizer of references is left: its deletion is irrevocable. */
export function isDeletionIrrevocable(resource: Resource): boolean {
	const finalizers = finalizersOf(resource);
	return (
		isMarkedForDeletion(resource) &&
		finalizers.length > 0 &&
		finalizers.every((each) => each === referencesFinalizer)
	);
}

/** Whether the partition or the namespace of a resource is being deleted, and the resource with it. */
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
		const stored = await backend.lookup({ type: unit.type, tenancy, name });
		if (stored !== undefined && isMarkedForDeletion(stored)) {
			return true;
		}
	}
	return false;
}
