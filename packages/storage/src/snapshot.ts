import type { Resource } from "@plinth/proto";
import type { ResourceName } from "@plinth/resource";
import { SnapshotEnded } from "./errors.ts";
import { isImported, type ListQuery } from "./query.ts";
import type { FamilyHolds, Hold } from "./retention/retention-ledger.ts";
import type { OrderedSnapshot } from "./state-store/ordered-map.ts";
import {
	keyAfter,
	orderKey,
	prefixSuffices,
	queryEnd,
	queryPrefix,
	stepThrough,
} from "./state-store/resource-key.ts";

/** A place in the order of resources. */
type Position = Pick<ResourceName, "tenancy" | "name" | "region">;

/** The resources that a query matches as of one version, however long they take to read. */
export interface Snapshot {
	/** The revision of the snapshot. */
	readonly version: string;
	/**
	 * The revision of the newest commit in the snapshot that changed the type family. It is a later one, up to
	 * `version`, if the family has not changed since the storage was opened.
	 */
	readonly familyVersion: string;
	/**
	 * The resources, ordered by partition, namespace and name, and copies of other regions behind all others, by region;
	 * with `after`, only those after that name, which need not exist. Lazy: only what is consumed is read. May be called again.
	 *
	 * @throws SnapshotEnded
	 */
	resources(after?: Position): Iterable<Resource>;
	/**
	 * As `resources`, with `undefined` for each name that was visited and does not match. A reader that pauses after
	 * a number of items does not block others, however few match.
	 *
	 * @throws SnapshotEnded
	 */
	visit(after?: Position): Iterable<Resource | undefined>;
	/** Whether it was released, or ended by the storage because it retained too much or was closed. */
	readonly ended: boolean;
	/**
	 * Holds the snapshot beyond this iteration of the event loop, until `release` is called: from now on, it counts as
	 * retained memory. Does nothing if it is held or has ended.
	 */
	hold(owner: SnapshotOwner): void;
	/** Releases the memory that only this snapshot retains. It can no longer be read. */
	release(): void;
}

/** The owner of held snapshots. */
export interface SnapshotOwner {
	/** The subject that the retained memory is charged to; absent for the server itself, whose snapshots end last. */
	readonly subject?: string | undefined;
	/** Called if the storage ends the snapshot before it is released. */
	readonly onEnded?: (() => void) | undefined;
}

/** The resources of one type family that a query matches, as of one revision. */
export class FamilySnapshot implements Snapshot {
	readonly version: string;
	readonly familyVersion: string;
	readonly #query: ListQuery;
	readonly #holds: FamilyHolds;
	readonly #hidesImported: boolean;
	#index: OrderedSnapshot<Resource> | undefined;
	#hold: Hold | undefined;

	/**
	 * @param holds - registers the snapshot while it is held.
	 * @param hidesImported - whether the family has copies of other clusters that the query does not select.
	 */
	constructor(
		query: ListQuery,
		index: OrderedSnapshot<Resource>,
		{ revision, familyRevision }: { readonly revision: number; readonly familyRevision: number },
		holds: FamilyHolds,
		hidesImported: boolean,
	) {
		this.#query = query;
		this.#holds = holds;
		this.#hidesImported = hidesImported;
		this.#index = index;
		this.version = String(revision);
		this.familyVersion = String(familyRevision);
	}

	get ended(): boolean {
		return this.#index === undefined;
	}

	hold({ subject, onEnded }: SnapshotOwner): void {
		if (this.#index !== undefined && this.#hold === undefined) {
			const taken = { revision: Number(this.version), epoch: this.#index.epoch };
			this.#hold = this.#holds.hold(taken, {
				subject,
				onEnded: () => {
					this.release();
					onEnded?.();
				},
			});
		}
	}

	release(): void {
		this.#index = undefined;
		this.#hold?.release();
		this.#hold = undefined;
	}

	resources(after?: Position): Generator<Resource, void, undefined> {
		const index = this.#open();
		return prefixSuffices(this.#query) && !this.#hidesImported
			? this.#scan(index, after)
			: found(this.visit(after));
	}

	visit(after?: Position): Generator<Resource | undefined, void, undefined> {
		const index = this.#open();
		const visited = prefixSuffices(this.#query)
			? this.#scan(index, after)
			: this.#seek(index, after);
		return this.#hidesImported ? withoutImported(visited) : visited;
	}

	/** @throws SnapshotEnded */
	#open(): OrderedSnapshot<Resource> {
		if (this.#index === undefined) {
			throw new SnapshotEnded(
				"the snapshot has ended: it was released, or the storage needed the memory; list again",
			);
		}
		return this.#index;
	}

	/** All resources with the prefix of the query. */
	#scan(index: OrderedSnapshot<Resource>, after?: Position): Generator<Resource, void, undefined> {
		const query = this.#query;
		return index.scan(queryPrefix(query), after && orderKey(after), queryEnd(query));
	}

	/** The names that the query selects in each namespace. */
	#seek(
		index: OrderedSnapshot<Resource>,
		after?: Position,
	): Generator<Resource | undefined, void, undefined> {
		let start = queryPrefix(this.#query);
		if (after !== undefined && keyAfter(after) > start) {
			start = keyAfter(after);
		}
		return index.visit(start, stepThrough(this.#query));
	}
}

/** Skips copies of other clusters. */
function* withoutImported(
	visited: Iterable<Resource | undefined>,
): Generator<Resource | undefined, void, undefined> {
	for (const resource of visited) {
		yield resource === undefined || isImported(resource) ? undefined : resource;
	}
}

/** The resources among visited names. */
function* found(visited: Iterable<Resource | undefined>): Generator<Resource, void, undefined> {
	for (const resource of visited) {
		if (resource !== undefined) {
			yield resource;
		}
	}
}
