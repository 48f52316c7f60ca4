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
 *
 * The cost grows with the number of references between the resources. What can't be marked, or is not gone yet, waits for
 * one of the holders that are in the way, the first that was found, and is looked at again when that one is marked:
 *
 *     marked ──▶ queue ──┬─ takes along ─▶ blocked? ─ no ─▶ marked
 *                        │                    └─ yes ─▶ waits for a blocker ───▶ looked at when that is marked
 *                        └─ irrevocable ─▶ held? ── no ─▶ gone: takes along what it owns
 *                                             └─ yes ─▶ waits for a holder ────▶ looked at when that is marked
 *
 * The search for the next one that is in the way continues where the last one was found. The queue is emptied before
 * what may be gone is looked at.
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
	/** What is looked at again when this is marked. */
	readonly waiting: (() => void)[];
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

/** After so many references, others get their turn on the event loop. */
const yieldEvery = 500;

/**
 * Plans the deletion of a resource.
 *
 * @param find - finds the holders of resources.
 * @param turn - waits for the next turn on the event loop. Planning ends if it rejects.
 */
export async function planDeletion(
	root: PlanRoot,
	find: (resources: readonly HeldResource[]) => Promise<readonly FoundHolders[]>,
	turn: () => Promise<void>,
): Promise<DeletionPlan> {
	const graph = new PlanGraph(root, turn);
	await graph.explore(find);
	return graph.plan();
}

class PlanGraph {
	readonly #root: Planned;
	readonly #byUid = new Map<string, Planned>();
	#isPartial = false;
	readonly #marked = new Set<Planned>();
	readonly #ownersLost = new Set<string>();
	/** What is taken along, and marked unless it is blocked. */
	readonly #taken = new Set<Planned>();
	/** What is marked and was not visited yet. */
	#queue: Planned[] = [];
	/** What is irrevocable, and may be gone. */
	#mayBeGone: (() => void)[] = [];
	readonly #turn: () => Promise<void>;
	#steps = 0;

	constructor({ isMarked, ...root }: PlanRoot, turn: () => Promise<void>) {
		this.#turn = turn;
		this.#root = {
			...root,
			...{ level: 0, isHidden: false, wasMarked: isMarked, outlivesOwners: true },
			...{ heldBy: [], unknown: [], waiting: [] },
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
					await this.#step();
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
				...{ level: held.level + 1, heldBy: [], unknown: [], waiting: [], home },
			};
			this.#byUid.set(uid, known);
		}
		const rule = strictest(holder.uses.map(({ rule }) => rule));
		const { isOwnee, isOwned } = holder;
		const hold = { holder: known, rule, isOwnee, isOwned };
		held.heldBy.push(hold);
		return hold;
	}

	async plan(): Promise<DeletionPlan> {
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
		await this.#spread();
		const effects = await this.#effects();
		const outcome = effects[0]?.fate === "deleted" ? "deleted" : "waits";
		return { outcome, effects, isPartial: this.#isPartial };
	}

	#mark(planned: Planned): void {
		if (!this.#marked.has(planned)) {
			this.#marked.add(planned);
			this.#ownersLost.add(planned.uid);
			this.#queue.push(planned);
		}
	}

	/** Marks all that what is marked takes along. */
	async #spread(): Promise<void> {
		while (this.#queue.length > 0 || this.#mayBeGone.length > 0) {
			while (this.#queue.length > 0) {
				const marked = this.#queue;
				this.#queue = [];
				for (const each of marked) {
					await this.#visit(each);
				}
			}
			const looks = this.#mayBeGone;
			this.#mayBeGone = [];
			for (const look of looks) {
				look();
				await this.#step();
			}
		}
	}

	/** Continues with what a resource that was marked takes along, and what has waited for it. */
	async #visit(marked: Planned): Promise<void> {
		for (const hold of marked.heldBy) {
			if (this.#takesAlong(hold)) {
				this.#take(hold.holder);
			}
			await this.#step();
		}
		for (const look of marked.waiting.splice(0)) {
			look();
			await this.#step();
		}
		if (this.#isIrrevocable(marked) && marked.unknown.length === 0) {
			const nextHolder = search(marked.heldBy, (hold) => this.#isUnreleased(hold));
			const look = () => {
				const hold = nextHolder();
				if (hold === undefined) {
					this.#takeOwned(marked);
				} else {
					hold.holder.waiting.push(() => this.#mayBeGone.push(look));
				}
			};
			this.#mayBeGone.push(look);
		}
	}

	/** Marks a resource as soon as nothing blocks it. */
	#take(planned: Planned): void {
		if (this.#taken.has(planned) || this.#marked.has(planned) || planned.unknown.length > 0) {
			return;
		}
		this.#taken.add(planned);
		const nextBlocker = search(planned.heldBy, (hold) => this.#blocks(hold));
		const look = () => {
			const hold = nextBlocker();
			if (hold === undefined || isPlanted("foretell the deletion of what is blocked")) {
				this.#mark(planned);
			} else {
				hold.holder.waiting.push(look);
			}
		};
		look();
	}

	#takeOwned(gone: Planned): void {
		for (const { holder, isOwned } of gone.heldBy) {
			if (isOwned) {
				this.#take(holder);
			}
		}
	}

	/** Lets others have their turn now and then. */
	async #step(): Promise<void> {
		this.#steps += 1;
		if (this.#steps % yieldEvery === 0) {
			await this.#turn();
		}
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

	async #effects(): Promise<readonly Effect[]> {
		const effects = new Map<Planned, Effect>();
		for (const planned of this.#marked) {
			const fate = this.#isGone(planned) ? "deleted" : "waits";
			effects.set(planned, { planned, fate, waitsFor: this.#unreleased(planned) });
			await this.#step();
		}
		for (const marked of this.#marked) {
			const isGone = effects.get(marked)?.fate === "deleted";
			for (const hold of marked.heldBy) {
				this.#addHeld(effects, hold, isGone);
				await this.#step();
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

	/** The holders that do not release a marked resource. */
	#unreleased({ heldBy }: Planned): readonly Planned[] {
		return heldBy.flatMap((hold) => (this.#isUnreleased(hold) ? hold.holder : []));
	}

	/** Whether the holder keeps its hold of a marked resource. One that is being deleted gives up its lost owners too. */
	#isUnreleased({ holder, rule, isOwnee }: Hold): boolean {
		if (this.#isIrrevocable(holder)) {
			return false;
		}
		const references = rule === OnDelete.BLOCK || rule === OnDelete.CASCADE;
		return references || (isOwnee && this.#losesAllOwners(holder) && !this.#marked.has(holder));
	}
}

/**
 * Finds one item after the other that fulfils a condition, or `undefined` if none does. Each search begins at the item that
 * was found last: as long as items only cease to fulfil the condition, all searches together look at each item once or
 * twice.
 */
function search<Item>(
	items: readonly Item[],
	fulfils: (item: Item) => boolean,
): () => Item | undefined {
	let at = 0;
	return () => {
		for (let looked = 0; looked < items.length; looked++) {
			const item = items[at];
			if (item !== undefined && fulfils(item)) {
				return item;
			}
			at = (at + 1) % items.length;
		}
		return undefined;
	};
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
