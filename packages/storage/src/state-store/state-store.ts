import type { ID, Resource } from "@plinth/proto";
import type { FamilyLike, ResourceName } from "@plinth/resource";
import type { Runtime } from "@plinth/runtime";
import { AttentionCensus, noAttention } from "../attention-census.ts";
import type { WatchOptions } from "../backend.ts";
import type { StateChange, StateView } from "../compare-and-swap.ts";
import type { WatchClosed } from "../errors.ts";
import type { StoredHistory } from "../history.ts";
import type { StorageLimits } from "../limits.ts";
import { isImported, type ListQuery, selectsImported } from "../query.ts";
import { RetainedMemory } from "../retention/retained-memory.ts";
import type { FamilyHolds } from "../retention/retention-ledger.ts";
import { FamilySnapshot, type SnapshotOwner } from "../snapshot.ts";
import type { StorageStatistics, TypeStatistics } from "../storage-statistics.ts";
import { storedAs } from "../stored-as.ts";
import { TenancyCensus, type TenancyUnit } from "../tenancy-census.ts";
import { type EventLog, LogEntry } from "../watch/event-log.ts";
import { Watch } from "../watch/watch.ts";
import { WatchDeliveries } from "../watch/watch-deliveries.ts";
import type { WatchEvent } from "../watch-event.ts";
import { WriteCounts } from "../write-counts.ts";
import { FamilyIndex } from "./family-index.ts";
import { FamilyMap } from "./family-map.ts";
import { type OwnedPage, OwnerIndex } from "./owner-index.ts";
import { readHistory } from "./read-history.ts";
import { memorySize } from "./resource-size.ts";

/** How changes are applied. */
export interface ApplyOptions {
	/** Whether they were made before this process has begun: then they are not its writes, and their time is not known. */
	readonly isReplayed?: boolean;
}

/**
 * The read side of every backend: the current state in memory, and the recent events.
 *
 * ```
 *   family "demo.Artist" ─┬─ index: (partition, namespace, name) → resource     FamilyIndex
 *                         └─ log:   base ─▶ event ─▶ event ─▶ tail              EventLog
 *   family "demo.Album"  ─┬─ index
 *                         └─ log
 *   owners: (owner's name, uid) → resources of all families                     OwnerIndex
 *   census: region, partition, namespace → type → how many                      TenancyCensus
 *   attention: type → how many are false, stale, being deleted                  AttentionCensus
 * ```
 *
 * A resource in an index, in the log, in events and in the result of its commit is one object.
 *
 * Only `apply` changes the state. It is synchronous and applies one whole revision: first the indexes,
 * then the logs, which wake the watches that wait for the events. Watches deliver later. This gives readers these guarantees:
 *
 * - *Atomicity.* No reader runs within an `apply`, so each sees all of a revision or nothing.
 * - *No read is older than an event.* An event is added to a log after the index is updated.
 * - *Each event once, none skipped.* A watch takes its snapshot of the index and its place in the log
 *   in one synchronous step, so that an event is in exactly one of them. From there it follows the
 *   links of the chain, which are set once, in the order of the revisions. If the next link was cut
 *   off, the watch ends with an error.
 * - *Bounded memory.* The memory that logs and held snapshots retain beyond the state stays within
 *   `retainedBudget`: the oldest events and snapshots are dropped.
 * - *A version on the last event of a revision only.* When a watch reaches a revision, all of it is
 *   in the chain, so looking ahead shows whether another event of it follows.
 */
export class StateStore implements StateView {
	readonly #runtime: Runtime;
	readonly #families = new FamilyMap<Family>();
	readonly #owners = new OwnerIndex();
	readonly #census = new TenancyCensus();
	readonly #attention = new AttentionCensus();
	readonly #writes = new WriteCounts();
	readonly #retained: RetainedMemory;
	readonly #deliveries: Pick<WatchDeliveries, "add">;
	#revision = 0;
	#bytes = 0;
	#size = 0;
	/** Logs created later, for families not stored or watched yet, start at this revision, which was loaded at this time. */
	#first: { readonly revision: number; readonly atMs: number };
	#closed: WatchClosed | undefined;

	/** @param deliveries - of all storages of the process, so that they share its time. */
	constructor(
		runtime: Runtime,
		limits: StorageLimits,
		deliveries: Pick<WatchDeliveries, "add"> = new WatchDeliveries(runtime),
	) {
		this.#runtime = runtime;
		this.#retained = new RetainedMemory(limits);
		this.#deliveries = deliveries;
		this.#first = { revision: 0, atMs: runtime.clock.now() };
	}

	/** The newest revision that was applied. */
	get revision(): number {
		return this.#revision;
	}

	/** The newest revision that was applied, as a version. */
	get version(): string {
		return String(this.#revision);
	}

	/** The estimated memory of all resources in bytes: the sum of `memorySize`. */
	get bytes(): number {
		return this.#bytes;
	}

	/** The estimated memory in bytes that event logs and held snapshots retain beyond the state. */
	get retainedBytes(): number {
		return this.#retained.bytes;
	}

	/** The number of resources. */
	get size(): number {
		return this.#size;
	}

	lookup(id: ResourceName): Resource | undefined {
		return id.type === undefined ? undefined : this.#families.get(id.type)?.index.get(id);
	}

	/**
	 * The resource of that name, and of that uid if the ID has one.
	 *
	 * @throws NotFound; GroupVersionMismatch.
	 */
	read(id: ID): Resource {
		return storedAs(id, this.lookup(id));
	}

	/**
	 * The resources that the query matches now.
	 *
	 * @param heldBy The owner, if the snapshot is held beyond this iteration of the event loop, until `release`.
	 */
	snapshot(query: ListQuery, heldBy?: SnapshotOwner): FamilySnapshot {
		const { index, log, holds, imported } = this.#family(query.type);
		const revisions = { revision: this.#revision, familyRevision: log.tail.revision };
		const hidesImported = imported > 0 && !selectsImported(query);
		const snapshot = new FamilySnapshot(query, index.snapshot(), revisions, holds, hidesImported);
		if (heldBy !== undefined) {
			snapshot.hold(heldBy);
		}
		return snapshot;
	}

	/** The resources of all families that the incarnation owns, or a part of them. */
	listByOwner(owner: ID, page?: OwnedPage): readonly Resource[] {
		return this.#owners.list(owner, page);
	}

	/** The number of resources of each type, by type key. */
	countByType(): ReadonlyMap<string, number> {
		return this.#census.all();
	}

	/** The number of resources of each type in a namespace or a partition, by type key. */
	countByTypeIn(unit: TenancyUnit): ReadonlyMap<string, number> {
		return this.#census.in(unit);
	}

	/** The counts that are maintained, as of now. */
	statistics(): StorageStatistics {
		const families = [...this.#families.values()];
		const sum = (figure: (log: EventLog) => number) =>
			families.reduce((total, { log }) => total + figure(log), 0);
		return {
			version: this.version,
			resources: this.#size,
			bytes: this.#bytes,
			retainedBytes: this.retainedBytes,
			logEvents: sum(({ events }) => events),
			oldestVersion: String(
				Math.max(this.#first.revision, ...families.map(({ log }) => log.floor)),
			),
			watches: sum(({ cursors }) => cursors),
			types: this.#typeStatistics(),
		};
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
			deliveries: this.#deliveries,
			source: {
				revision: () => this.#revision,
				log: this.#family(query.type).log,
				snapshot: (onEnded) => this.snapshot(query, { ...options.heldBy, onEnded }),
			},
		});
	}

	/** The recent versions of a name, as `HistorySource.history` describes them. */
	async history(name: ResourceName, signal: AbortSignal): Promise<StoredHistory> {
		const family = name.type && this.#families.get(name.type);
		if (family === undefined) {
			const { revision, atMs } = this.#first;
			return { versions: [], sinceVersion: String(revision), sinceMs: atMs };
		}
		const { scheduler } = this.#runtime;
		return readHistory(family.log, name, () => this.lookup(name), { scheduler, signal });
	}

	/**
	 * Adds a resource that was stored before the storage was opened, without an event or a revision. Only
	 * before `begin`.
	 */
	load(resource: Resource): void {
		this.#store({ op: "put", resource });
	}

	/** Ends loading: sets the revision of the state, after which events begin. */
	begin(revision: number): void {
		this.#revision = revision;
		this.#first = { revision, atMs: this.#runtime.clock.now() };
		for (const family of this.#families.values()) {
			family.log = this.#retained.openLog(this.#first, family.holds, family.log);
		}
	}

	/**
	 * Applies all changes of a revision, which must be newer than all before. Each change has a different
	 * name.
	 */
	apply(
		revision: number,
		changes: readonly StateChange[],
		{ isReplayed = false }: ApplyOptions = {},
	): void {
		if (revision <= this.#revision) {
			throw new RangeError(`revision ${revision} is not newer than ${this.#revision}`);
		}
		const replaced = changes.map((change) => this.#store(change));
		this.#revision = revision;
		const atMs = isReplayed ? 0 : this.#runtime.clock.now();
		const touched: EventLog[] = [];
		for (let index = 0; index < changes.length; index += 1) {
			const change = changes[index];
			if (change === undefined) {
				continue;
			}
			const { op, resource, writtenBy } = change;
			const { log } = this.#family(typeOf(resource));
			if (resource.id?.type !== undefined && !isReplayed) {
				this.#writes.add(resource.id.type);
			}
			const { previous, bytes: replacedBytes } = replaced[index] ?? nothing;
			const origin = { replacedBytes, atMs, writtenBy };
			log.append(
				op === "put"
					? new LogEntry(revision, "upsert", resource, previous, origin)
					: new LogEntry(revision, "delete", resource, undefined, origin),
			);
			if (!touched.includes(log)) {
				touched.push(log);
			}
		}
		for (const log of touched) {
			log.trim();
		}
		this.#retained.enforce(this.#bytes);
	}

	/** Ends all watches and held snapshots, so that nothing keeps the state in memory. */
	close(reason: WatchClosed): void {
		this.#closed = reason;
		for (const { log } of this.#families.values()) {
			log.close(reason);
		}
		this.#retained.ledger.endAll();
	}

	/** Updates the indexes for a change, and returns what was stored before. */
	#store({ op, resource }: Pick<StateChange, "op" | "resource">): Replaced {
		const id = resource.id ?? unnamed(resource);
		const family = this.#family(typeOf(resource));
		const { index } = family;
		const next = op === "put" ? resource : undefined;
		const previous = next === undefined ? index.delete(id) : index.set(id, next);
		family.imported += importedCount(next) - importedCount(previous);
		this.#owners.update(previous, next);
		this.#census.update(previous, next);
		this.#attention.update(previous, next);
		const bytes = memorySize(previous);
		this.#bytes += memorySize(next) - bytes;
		this.#size += Number(next !== undefined) - Number(previous !== undefined);
		return previous === undefined ? nothing : { previous, bytes };
	}

	#typeStatistics(): ReadonlyMap<string, TypeStatistics> {
		const resources = this.#census.all();
		const attention = this.#attention.byType();
		const writes = this.#writes.byType();
		const keys = new Set([...resources.keys(), ...writes.keys()]);
		return new Map(
			[...keys].map((key) => [
				key,
				{
					resources: resources.get(key) ?? 0,
					writes: writes.get(key) ?? 0,
					...(attention.get(key) ?? noAttention),
				},
			]),
		);
	}

	#family(type: FamilyLike): Family {
		let family = this.#families.get(type);
		if (family === undefined) {
			const holds = this.#retained.ledger.family();
			const log = this.#retained.openLog(this.#first, holds);
			if (this.#closed !== undefined) {
				log.close(this.#closed);
			}
			const index = new FamilyIndex<Resource>((epoch, bytes) => holds.pageDied(epoch, bytes));
			family = { index, log, holds, imported: 0 };
			this.#families.set(type, family);
		}
		return family;
	}
}

/** A resource that a change has replaced or deleted, if there was one, with its `memorySize`. */
interface Replaced {
	readonly previous: Resource | undefined;
	readonly bytes: number;
}

const nothing: Replaced = { previous: undefined, bytes: 0 };

interface Family {
	readonly index: FamilyIndex<Resource>;
	log: EventLog;
	readonly holds: FamilyHolds;
	/** How many copies of other clusters the index has. */
	imported: number;
}

function importedCount(resource: Resource | undefined): number {
	return resource?.origin !== undefined && isImported(resource) ? 1 : 0;
}

function typeOf(resource: Resource): FamilyLike {
	return resource.id?.type ?? unnamed(resource);
}

function unnamed(_resource: Resource): never {
	throw new TypeError("a stored resource needs an id with a type");
}
