import type { ID, Resource } from "@plinth/proto";
import { type FamilyLike, familyKey, type ResourceName } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import type { WatchOptions } from "../backend.ts";
import type { Change, StateView } from "../compare-and-swap.ts";
import { GroupVersionMismatch, NotFound, type WatchClosed } from "../errors.ts";
import type { StorageLimits } from "../limits.ts";
import type { ListQuery } from "../query.ts";
import { RetainedMemory } from "../retention/retained-memory.ts";
import type { FamilyHolds } from "../retention/retention-ledger.ts";
import { FamilySnapshot, type SnapshotOwner } from "../snapshot.ts";
import { TenancyCensus, type TenancyUnit } from "../tenancy-census.ts";
import { type EventLog, LogEntry } from "../watch/event-log.ts";
import { Watch } from "../watch/watch.ts";
import type { WatchEvent } from "../watch-event.ts";
import { OrderedMap } from "./ordered-map.ts";
import { OwnerIndex } from "./owner-index.ts";
import { orderKey } from "./resource-key.ts";
import { memorySize } from "./resource-size.ts";

/**
 * The read side of every backend: what is stored now, in memory, and what happened lately.
 *
 * ```
 *   family "demo.Artist" ─┬─ index: (partition, namespace, name) → resource     OrderedMap
 *                         └─ log:   base ─▶ event ─▶ event ─▶ tail              EventLog
 *   family "demo.Album"  ─┬─ index
 *                         └─ log
 *   owners: (owner's name, uid) → resources of all families                     OwnerIndex
 *   census: partition, namespace → type → how many                              TenancyCensus
 * ```
 *
 * A resource in an index, in the log, in events and in the answer of its commit is one object.
 *
 * `apply` is all that changes the state. It is synchronous, and works through one revision whole:
 * indexes first, then the logs, then it calls the watches that wait. From that follows what readers
 * are promised:
 *
 * - *Nothing half.* No reader runs within an `apply`, so each sees all of a revision or nothing.
 * - *No read is older than an event.* An event is in a log only when the index has it already.
 * - *Each event once, none skipped.* A watch takes its snapshot of the index and its place in the log
 *   in one synchronous step, so that an event is in exactly one of them. From there it follows the
 *   links of the chain, which are set once, in the order of the revisions. Where the chain has lost
 *   the next link, the watch ends and says so.
 * - *Memory within bounds.* What logs and held snapshots keep alive beyond the state is within
 *   `retainedBudget`: the oldest events and snapshots give way.
 * - *A version on the last event of a revision only.* When a watch looks at a revision, all of it is
 *   in the chain, so looking ahead within it tells whether another event of it is to come.
 */
export class StateStore implements StateView {
	readonly #runtime: Runtime;
	readonly #families = new Map<string, Family>();
	readonly #owners = new OwnerIndex();
	readonly #census = new TenancyCensus();
	readonly #retained: RetainedMemory;
	#revision = 0;
	#bytes = 0;
	#size = 0;
	/** Logs that begin later, for families that nobody has stored or watched yet, reach back to here. */
	#firstRevision = 0;
	#closed: WatchClosed | undefined;

	constructor(runtime: Runtime, limits: StorageLimits) {
		this.#runtime = runtime;
		this.#retained = new RetainedMemory(limits);
	}

	/** The newest revision that was applied. */
	get revision(): number {
		return this.#revision;
	}

	/** The newest revision that was applied, as a version. */
	get version(): string {
		return String(this.#revision);
	}

	/** About how many bytes of memory all resources take: the sum of `memorySize`. */
	get bytes(): number {
		return this.#bytes;
	}

	/** About how many bytes event logs and held snapshots keep in memory that are not part of the state. */
	get retainedBytes(): number {
		return this.#retained.bytes;
	}

	/** The number of resources. */
	get size(): number {
		return this.#size;
	}

	lookup(id: ResourceName): Resource | undefined {
		return id.type === undefined
			? undefined
			: this.#families.get(familyKey(id.type))?.index.get(orderKey(id));
	}

	/**
	 * The resource of that name, and of that uid where the ID has one.
	 *
	 * @throws NotFound; GroupVersionMismatch.
	 */
	read(id: ID): Resource {
		const stored = this.lookup(id);
		if (stored === undefined || (id.uid !== "" && stored.id?.uid !== id.uid)) {
			throw new NotFound(id);
		}
		if (id.type !== undefined && stored.id?.type?.groupVersion !== id.type.groupVersion) {
			throw new GroupVersionMismatch(id.type, stored);
		}
		return stored;
	}

	/**
	 * What the query matches now.
	 *
	 * @param heldBy Whoever keeps the snapshot beyond this turn of the event loop, until it calls `release`.
	 */
	snapshot(query: ListQuery, heldBy?: SnapshotOwner): FamilySnapshot {
		const { index, holds } = this.#family(query.type);
		const snapshot = new FamilySnapshot(query, index.snapshot(), this.#revision);
		if (heldBy !== undefined) {
			snapshot.holdIn(holds, heldBy);
		}
		return snapshot;
	}

	/** What the very incarnation owns, of all families. */
	listByOwner(owner: ID): readonly Resource[] {
		return this.#owners.list(owner);
	}

	/** How many resources there are of each type, by its key. */
	countByType(): ReadonlyMap<string, number> {
		return this.#census.all();
	}

	/** How many resources of each type a namespace or a partition holds, by the type's key. */
	countByTypeIn(unit: TenancyUnit): ReadonlyMap<string, number> {
		return this.#census.in(unit);
	}

	/**
	 * A watch, as `StorageBackend.watchList` describes it.
	 *
	 * @param catchUp Called before a watch with consistency `strong` begins.
	 */
	watch(
		query: ListQuery,
		options: WatchOptions,
		catchUp: (signal: AbortSignal) => Promise<unknown>,
	): AsyncIterable<WatchEvent> {
		return new Watch({
			query,
			options,
			catchUp,
			runtime: this.#runtime,
			source: {
				revision: () => this.#revision,
				log: this.#family(query.type).log,
				snapshot: (onEnded) => this.snapshot(query, { ...options.heldBy, onEnded }),
			},
		});
	}

	/**
	 * Takes in what a storage held before it was opened: no event, and no revision yet. Only before
	 * `begin`.
	 */
	load(resource: Resource): void {
		this.#store({ op: "put", resource });
	}

	/** Ends loading: the state is that of a revision, and events begin behind it. */
	begin(revision: number): void {
		this.#revision = revision;
		this.#firstRevision = revision;
		for (const [key, family] of this.#families) {
			const log = this.#retained.openLog(revision, family.holds, family.log);
			this.#families.set(key, { ...family, log });
		}
	}

	/**
	 * Moves the state on to a revision, which must be newer than all before. The changes are all that
	 * there are of it, each of another name.
	 */
	apply(revision: number, changes: readonly Change[]): void {
		if (revision <= this.#revision) {
			throw new RangeError(`revision ${revision} is not newer than ${this.#revision}`);
		}
		const replaced = changes.map((change) => this.#store(change));
		this.#revision = revision;
		const touched = new Set<EventLog>();
		for (const [index, { op, resource }] of changes.entries()) {
			const { log } = this.#family(typeOf(resource));
			log.append(
				op === "put"
					? new LogEntry(revision, "upsert", resource, replaced[index])
					: new LogEntry(revision, "delete", resource, undefined),
			);
			touched.add(log);
		}
		for (const log of touched) {
			log.trim();
			log.wake();
		}
		this.#retained.enforce(this.#bytes);
	}

	/** Ends all watches and held snapshots, so that nobody keeps the state in memory. */
	close(reason: WatchClosed): void {
		this.#closed = reason;
		for (const { log } of this.#families.values()) {
			log.close(reason);
		}
		this.#retained.ledger.endAll();
	}

	/** Brings the indexes in line with a change, and returns what was stored before. */
	#store({ op, resource }: Change): Resource | undefined {
		const id = resource.id ?? unnamed(resource);
		const { index } = this.#family(typeOf(resource));
		const key = orderKey(id);
		const next = op === "put" ? resource : undefined;
		const previous = next === undefined ? index.delete(key) : index.set(key, next);
		this.#owners.update(previous, next);
		this.#census.update(previous, next);
		this.#bytes += memorySize(next) - memorySize(previous);
		this.#size += Number(next !== undefined) - Number(previous !== undefined);
		return previous;
	}

	#family(type: FamilyLike): Family {
		const key = familyKey(type);
		let family = this.#families.get(key);
		if (family === undefined) {
			const holds = this.#retained.ledger.family();
			const log = this.#retained.openLog(this.#firstRevision, holds);
			if (this.#closed !== undefined) {
				log.close(this.#closed);
			}
			const index = new OrderedMap<Resource>((epoch, bytes) => holds.pageDied(epoch, bytes));
			family = { index, log, holds };
			this.#families.set(key, family);
		}
		return family;
	}
}

interface Family {
	readonly index: OrderedMap<Resource>;
	readonly log: EventLog;
	readonly holds: FamilyHolds;
}

function typeOf(resource: Resource): FamilyLike {
	return resource.id?.type ?? unnamed(resource);
}

function unnamed(_resource: Resource): never {
	throw new TypeError("a stored resource needs an id with a type");
}
