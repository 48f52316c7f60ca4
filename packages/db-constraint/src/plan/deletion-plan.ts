/**
 * Foretells what a deletion does, by the rules by which the controllers apply it:
 *
 *     a resource is marked if something marked takes it along, and nothing blocks it
 *     takes along:  a CASCADE reference; the loss of its last owner; BLOCK in a tenancy that is being deleted
 *     blocks:       a BLOCK reference of a resource that is not irrevocably being deleted;
 *                   a deployment that may reference it and can't be asked
 *     irrevocable:  marked, and without finalizers of others
 *     gone:         irrevocable, and all of its holders are irrevocable, cleared, or disowned
 *     owned:        by `Resource.owner`: marked once its owner is gone, if nothing blocks it
 *
 * What is marked is the smallest set that fulfils these rules: two resources that only block each other stay. Of the
 * owners of a resource that are all lost, it can't be foretold which is given up last, and decides whether the resource
 * stays: it stays if one of them allows that.
 */
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import type { Deployed, ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { isPlanted } from "../fault-points.ts";
import { strictest } from "../shadow/shadow.ts";
import type { FoundHolder, FoundHolders, HeldResource } from "./all-holders.ts";

/** A resource of the plan. */
export interface Planned extends HeldResource {
	/** How far it is from the deleted resource. */
	readonly level: number;
	/** Whether the caller may not read it. */
	readonly isHidden: boolean;
	/** Finalizers of others. */
	readonly finalizers: readonly string[];
	/** Whether it was being deleted before. */
	readonly wasMarked: boolean;
	readonly ownerUids: readonly string[];
	readonly outlivesOwners: boolean;
	readonly yields: boolean;
	/** What holds it, once it was asked for. */
	readonly heldBy: Hold[];
	/** The deployments that may hold it and could not be asked. */
	readonly unknown: string[];
}

/** That a resource holds another one. */
interface Hold {
	readonly holder: Planned;
	/** The strictest rule of its references. */
	readonly rule: OnDelete;
	readonly isOwnee: boolean;
	/** Whether it is owned, and thus deleted once its owner is gone. */
	readonly isOwned: boolean;
}

/** What happens to a resource of a plan, or what it does. */
export type Fate = "deleted" | "waits" | "blocked" | "blocks" | "cleared" | "disowned";

/** A resource of a plan, and what happens to it. */
export interface Effect {
	readonly planned: Planned;
	readonly fate: Fate;
	/** What it waits for, or what blocks it. */
	readonly waitsFor: readonly Planned[];
}

/** The resource whose deletion is planned. */
export interface PlanRoot {
	readonly key: ResourceKey;
	readonly uid: string;
	readonly finalizers: readonly string[];
	readonly isMarked: boolean;
	readonly ownerUids: readonly string[];
	readonly yields: boolean;
	readonly holders: readonly Deployed[];
	readonly home: Deployed;
}

/** A plan. */
export interface DeletionPlan {
	readonly outcome: "refused" | "deleted" | "waits";
	/** The resource itself first, then by level. */
	readonly effects: readonly Effect[];
	/** Whether more resources would have had to be examined. */
	readonly isPartial: boolean;
}

/** How many resources are examined. */
const examinedAtMost = 10_000;

/**
 * Plans the deletion of a resource.
 *
 * @param find - finds the holders of resources.
 */
export async function planDeletion(
	root: PlanRoot,
	find: (resources: readonly HeldResource[]) => Promise<readonly FoundHolders[]>,
): Promise<DeletionPlan> {
	const graph = new PlanGraph(root);
	await graph.explore(find);
	return graph.plan();
}

class PlanGraph {
	readonly #root: Planned;
	readonly #byUid = new Map<string, Planned>();
	#isPartial = false;
	readonly #marked = new Set<Planned>();
	readonly #ownersLost = new Set<string>();

	constructor({ isMarked, ...root }: PlanRoot) {
		this.#root = {
			...root,
			...{ level: 0, isHidden: false, wasMarked: isMarked, outlivesOwners: true },
			...{ heldBy: [], unknown: [] },
		};
		this.#byUid.set(root.uid, this.#root);
	}

	/** Finds what may be affected, level by level. */
	async explore(
		find: (resources: readonly HeldResource[]) => Promise<readonly FoundHolders[]>,
	): Promise<void> {
		const explored = new Set<Planned>();
		let next: readonly Planned[] = [this.#root];
		while (next.length > 0) {
			const found = await find(next);
			const reached = new Set<Planned>();
			for (const [at, held] of next.entries()) {
				explored.add(held);
				const { holders = [], unknown = [], hasMore = false } = found[at] ?? {};
				held.unknown.push(...unknown);
				this.#isPartial ||= hasMore;
				for (const each of holders) {
					const hold = this.#hold(held, each);
					if (hold !== undefined && mayTakeAlong(hold)) {
						reached.add(hold.holder);
					}
				}
			}
			next = [...reached].filter((each) => !explored.has(each));
		}
	}

	#hold(held: Planned, { holder, home }: FoundHolder): Hold | undefined {
		let known = this.#byUid.get(holder.uid);
		if (known === undefined) {
			if (this.#byUid.size >= examinedAtMost || holder.resource === undefined) {
				this.#isPartial = true;
				return undefined;
			}
			const { resource: key, uid, isMarked: wasMarked, isHidden, finalizers } = holder;
			const { ownerUids, outlivesOwners, yields, holders } = holder;
			known = {
				...{
					key,
					uid,
					wasMarked,
					isHidden,
					finalizers,
					ownerUids,
					outlivesOwners,
					yields,
					holders,
				},
				...{ level: held.level + 1, heldBy: [], unknown: [], home },
			};
			this.#byUid.set(uid, known);
		}
		const rule = strictest(holder.uses.map(({ rule }) => rule));
		const { isOwnee, isOwned } = holder;
		const hold = { holder: known, rule, isOwnee, isOwned };
		held.heldBy.push(hold);
		return hold;
	}

	plan(): DeletionPlan {
		const root = this.#root;
		for (const each of this.#byUid.values()) {
			if (each.wasMarked) {
				this.#mark(each);
			}
		}
		const blockers = this.#blockersOf(root);
		const isBlocked = blockers.length > 0 || root.unknown.length > 0;
		if (isBlocked && !root.wasMarked) {
			const refused = { planned: root, fate: "blocked", waitsFor: blockers } as const;
			const effects = blockers.map(
				(planned): Effect => ({ planned, fate: "blocks", waitsFor: [] }),
			);
			return { outcome: "refused", effects: [refused, ...effects], isPartial: this.#isPartial };
		}
		this.#mark(root);
		this.#spread();
		while (this.#markOwned()) {
			this.#spread();
		}
		const effects = this.#effects();
		const outcome = effects[0]?.fate === "deleted" ? "deleted" : "waits";
		return { outcome, effects, isPartial: this.#isPartial };
	}

	#mark(planned: Planned): void {
		this.#marked.add(planned);
		this.#ownersLost.add(planned.uid);
	}

	/**
	 * Marks all that what is marked takes along. What is blocked waits for one of its blockers, and is looked at again when
	 * that one can no longer block.
	 */
	#spread(): void {
		const blocked = new Map<Planned, Hold[]>();
		const take = (hold: Hold) => {
			const { holder } = hold;
			if (this.#marked.has(holder) || holder.unknown.length > 0 || !this.#takesAlong(hold)) {
				return;
			}
			const blocker = holder.heldBy.find((each) => this.#blocks(each))?.holder;
			if (blocker === undefined || isPlanted("foretell the deletion of what is blocked")) {
				this.#mark(holder);
			} else {
				blocked.set(blocker, [...(blocked.get(blocker) ?? []), hold]);
			}
		};
		// What is marked meanwhile is visited too.
		for (const marked of this.#marked) {
			marked.heldBy.forEach(take);
			const waiting = this.#isIrrevocable(marked) ? blocked.get(marked) : undefined;
			waiting?.forEach(take);
		}
	}

	/** Marks what is owned by something that is gone. Returns whether it has marked anything. */
	#markOwned(): boolean {
		const before = this.#marked.size;
		for (const marked of [...this.#marked]) {
			const owned = this.#isGone(marked) ? marked.heldBy.filter(({ isOwned }) => isOwned) : [];
			for (const { holder } of owned) {
				if (holder.unknown.length === 0 && this.#blockersOf(holder).length === 0) {
					this.#mark(holder);
				}
			}
		}
		return this.#marked.size > before;
	}

	#isGone(marked: Planned): boolean {
		return (
			this.#isIrrevocable(marked) &&
			marked.unknown.length === 0 &&
			this.#unreleased(marked).length === 0
		);
	}

	#takesAlong(hold: Hold): boolean {
		return (
			cascades(hold) ||
			(hold.isOwnee &&
				this.#losesAllOwners(hold.holder) &&
				!isPlanted("foretell that what has lost its owners stays"))
		);
	}

	#losesAllOwners({ ownerUids, outlivesOwners }: Planned): boolean {
		return !outlivesOwners && ownerUids.every((uid) => this.#ownersLost.has(uid));
	}

	/** What keeps a resource from being marked. */
	#blockersOf({ heldBy }: Planned): readonly Planned[] {
		return heldBy.flatMap((each) => (this.#blocks(each) ? each.holder : []));
	}

	#blocks({ holder, rule }: Hold): boolean {
		return rule === OnDelete.BLOCK && !holder.yields && !this.#isIrrevocable(holder);
	}

	#isIrrevocable(planned: Planned): boolean {
		return this.#marked.has(planned) && planned.finalizers.length === 0;
	}

	#effects(): readonly Effect[] {
		const effects = new Map<Planned, Effect>();
		for (const planned of this.#marked) {
			const fate = this.#isGone(planned) ? "deleted" : "waits";
			effects.set(planned, { planned, fate, waitsFor: this.#unreleased(planned) });
		}
		for (const marked of this.#marked) {
			for (const hold of marked.heldBy) {
				this.#addHeld(effects, hold, this.#isGone(marked));
			}
		}
		return [...effects.values()].sort((a, b) => a.planned.level - b.planned.level);
	}

	/** What happens to a holder that is not marked. */
	#addHeld(effects: Map<Planned, Effect>, hold: Hold, isGone: boolean): void {
		const { holder } = hold;
		if (this.#marked.has(holder) || effects.get(holder)?.fate === "blocked") {
			return;
		}
		if (this.#takesAlong(hold) || (hold.isOwned && isGone)) {
			const waitsFor = this.#blockersOf(holder);
			effects.set(holder, { planned: holder, fate: "blocked", waitsFor });
			for (const planned of waitsFor) {
				if (!effects.has(planned)) {
					effects.set(planned, { planned, fate: "blocks", waitsFor: [] });
				}
			}
			return;
		}
		if (hold.rule === OnDelete.ON_DELETE_UNSPECIFIED && !hold.isOwnee) {
			// It is owned by something that waits.
			return;
		}
		const fate =
			hold.rule === OnDelete.BLOCK
				? "blocks"
				: hold.rule === OnDelete.UNSET
					? "cleared"
					: "disowned";
		effects.set(holder, { planned: holder, fate, waitsFor: [] });
	}

	/** The holders that do not release a marked resource. One that is being deleted gives up its lost owners too. */
	#unreleased({ heldBy }: Planned): readonly Planned[] {
		return heldBy.flatMap((hold) => {
			const { holder, rule } = hold;
			if (this.#isIrrevocable(holder)) {
				return [];
			}
			const references = rule === OnDelete.BLOCK || rule === OnDelete.CASCADE;
			const isStuck = hold.isOwnee && this.#losesAllOwners(holder) && !this.#marked.has(holder);
			return references || isStuck ? [holder] : [];
		});
	}
}

function cascades({ holder, rule }: Hold): boolean {
	return rule === OnDelete.CASCADE || (rule === OnDelete.BLOCK && holder.yields);
}

/** Whether the holder may be deleted with what it holds, so that its own holders matter. */
function mayTakeAlong(hold: Hold): boolean {
	const { holder } = hold;
	const isTaken = cascades(hold) || hold.isOwned || holder.wasMarked;
	return isTaken || (hold.isOwnee && !holder.outlivesOwners);
}
