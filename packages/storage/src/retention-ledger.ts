/**
 * What held snapshots keep in memory after the state has replaced or deleted it.
 *
 * A value lives from its birth to its death. A snapshot sees the values that lived when it was taken,
 * and keeps them alive when they have died. Each dead value is counted once, however many snapshots
 * keep it: it is charged to the newest of them, under the epoch of the oldest.
 *
 * ```
 *   snapshots of a family      s1          s2          s3              now
 *   a value                ├───┼───────────┼───────────┼───────┤ dies: charged to s3, under s1
 *   another                        ├───────┼───┤               dies: charged to s2, under s2
 *   a third                                      ├──┤          dies: no snapshot has seen it
 * ```
 *
 * When a snapshot is released, what it is charged with moves to the next older snapshot, if that one
 * has seen the value: if its epoch is not below the one of the charge. The rest is free. A charge
 * costs a binary search, and nothing where no snapshot is held.
 *
 * Invariants, checked by a property test against a model that remembers every value:
 * - `bytes` is the size of all dead values that at least one held snapshot has seen.
 * - `bytes` is the sum of what the subjects are charged with.
 */
export class RetentionLedger {
	#bytes = 0;
	/** In the order in which they were taken, of all families. */
	readonly #holds = new Set<Hold>();
	readonly #subjects = new Map<string | undefined, Subject>();

	/** Bytes that live on only because of held snapshots. */
	get bytes(): number {
		return this.#bytes;
	}

	/** The number of held snapshots. */
	get size(): number {
		return this.#holds.size;
	}

	/** The bytes charged to a subject. */
	bytesOf(subject: string | undefined): number {
		return this.#subjects.get(subject)?.bytes ?? 0;
	}

	/** The books of another type family, whose snapshots see nothing of the others. */
	family(): FamilyHolds {
		return new FamilyHolds(this);
	}

	/**
	 * Ends held snapshots until no more than `maxBytes` are retained. A subject that is charged with
	 * more than a quarter of that loses its snapshots first, the oldest first; otherwise the oldest
	 * snapshot ends, whoever holds it. The server's own snapshots, which have no subject, end last.
	 */
	shrink(maxBytes: number): void {
		while (this.#bytes > maxBytes) {
			const hold = this.#nextToEnd(maxBytes);
			if (hold === undefined) {
				return;
			}
			hold.release();
			hold.onEnded();
		}
	}

	/** Ends all held snapshots. */
	endAll(): void {
		for (const hold of [...this.#holds]) {
			hold.release();
			hold.onEnded();
		}
	}

	/** For the books of a family. */
	opened(hold: Hold): void {
		this.#holds.add(hold);
		const subject = this.#subjects.get(hold.subject);
		if (subject === undefined) {
			this.#subjects.set(hold.subject, { bytes: 0, holds: new Set([hold]) });
		} else {
			subject.holds.add(hold);
		}
	}

	/** For the books of a family: the hold has no more charges. */
	closed(hold: Hold): void {
		this.#holds.delete(hold);
		const subject = this.#subjects.get(hold.subject);
		subject?.holds.delete(hold);
		if (subject?.holds.size === 0) {
			this.#subjects.delete(hold.subject);
		}
	}

	/** For the books of a family: a hold is charged with more, or with less. */
	charged(hold: Hold, bytes: number): void {
		this.#bytes += bytes;
		const subject = this.#subjects.get(hold.subject);
		if (subject !== undefined) {
			subject.bytes += bytes;
		}
	}

	#nextToEnd(maxBytes: number): Hold | undefined {
		let largest: Subject | undefined;
		for (const [name, subject] of this.#subjects) {
			if (name !== undefined && subject.bytes > (largest?.bytes ?? 0)) {
				largest = subject;
			}
		}
		if (largest === undefined) {
			return oldestCharged(this.#holds, () => true);
		}
		return largest.bytes > maxBytes / 4
			? oldestCharged(largest.holds, () => true)
			: oldestCharged(this.#holds, ({ subject }) => subject !== undefined);
	}
}

interface Subject {
	bytes: number;
	/** In the order in which they were taken. */
	readonly holds: Set<Hold>;
}

function oldestCharged(holds: Iterable<Hold>, isMeant: (hold: Hold) => boolean): Hold | undefined {
	for (const hold of holds) {
		if (hold.bytes > 0 && isMeant(hold)) {
			return hold;
		}
	}
	return undefined;
}

/** Who holds a snapshot, and how it learns that the snapshot was ended. */
export interface SnapshotHolder {
	/** Whose share the retained memory counts into; absent for the server itself. */
	readonly subject?: string | undefined;
	/** Called once where the snapshot is ended because it retains too much, or with its storage. */
	readonly onEnded: () => void;
}

/** When a snapshot was taken. Both grow with every snapshot of a family, the epoch strictly. */
interface Taken {
	/** The newest revision that the snapshot sees. */
	readonly revision: number;
	/** The newest epoch of the index whose pages the snapshot sees. */
	readonly epoch: number;
}

/** A snapshot that is held. */
export class Hold {
	readonly revision: number;
	readonly epoch: number;
	readonly subject: string | undefined;
	readonly onEnded: () => void;
	/** By the epoch of the oldest snapshot that has seen the values, as it was when they were charged. */
	charges: Map<number, number> | undefined;
	bytes = 0;
	#family: FamilyHolds | undefined;

	/** Made by `FamilyHolds.hold`. */
	constructor(family: FamilyHolds, { revision, epoch }: Taken, holder: SnapshotHolder) {
		this.#family = family;
		this.revision = revision;
		this.epoch = epoch;
		this.subject = holder.subject;
		this.onEnded = holder.onEnded;
	}

	/** Gives the snapshot up. Without effect where it has ended already. */
	release(): void {
		const family = this.#family;
		this.#family = undefined;
		family?.release(this);
	}
}

/** The held snapshots of one type family. */
export class FamilyHolds {
	readonly #ledger: RetentionLedger;
	/** By epoch, ascending, from `#start` on. */
	#held: Hold[] = [];
	/** Where the array begins: mostly the oldest are released first, and moving all others costs too much. */
	#start = 0;

	/** Made by `RetentionLedger.family`. */
	constructor(ledger: RetentionLedger) {
		this.#ledger = ledger;
	}

	/** Enters a snapshot that was just taken. */
	hold(taken: Taken, holder: SnapshotHolder): Hold {
		const hold = new Hold(this, taken, holder);
		this.#held.push(hold);
		this.#ledger.opened(hold);
		return hold;
	}

	/** A resource of revision `bornAt` is no longer kept by anything but snapshots; it was replaced at `diedAt`. */
	resourceDied(bornAt: number, diedAt: number, bytes: number): void {
		if (this.#held.length === this.#start) {
			return;
		}
		const newest = this.#before(this.#firstIndex((hold) => hold.revision >= diedAt));
		if (newest === undefined || newest.revision < bornAt) {
			return;
		}
		const oldest = this.#held[this.#firstIndex((hold) => hold.revision >= bornAt)];
		this.#charge(newest, (oldest ?? newest).epoch, bytes);
	}

	/** A page of the index that was made in that epoch was replaced just now. */
	pageDied(bornIn: number, bytes: number): void {
		const newest = this.#before(this.#held.length);
		if (newest === undefined || newest.epoch < bornIn) {
			return;
		}
		const oldest = this.#held[this.#firstIndex((hold) => hold.epoch >= bornIn)];
		this.#charge(newest, (oldest ?? newest).epoch, bytes);
	}

	/** For `Hold.release`. */
	release(hold: Hold): void {
		const index = this.#firstIndex((each) => each.epoch >= hold.epoch);
		const older = this.#before(index);
		this.#remove(index);
		for (const [oldestEpoch, bytes] of hold.charges ?? []) {
			if (older !== undefined && older.epoch >= oldestEpoch) {
				this.#charge(older, oldestEpoch, bytes);
			}
		}
		this.#ledger.charged(hold, -hold.bytes);
		this.#ledger.closed(hold);
	}

	#before(index: number): Hold | undefined {
		return index > this.#start ? this.#held[index - 1] : undefined;
	}

	#remove(index: number): void {
		if (index !== this.#start) {
			this.#held.splice(index, 1);
			return;
		}
		this.#start += 1;
		if (this.#start * 2 >= this.#held.length) {
			this.#held = this.#held.slice(this.#start);
			this.#start = 0;
		}
	}

	#charge(hold: Hold, oldestEpoch: number, bytes: number): void {
		hold.charges ??= new Map();
		hold.charges.set(oldestEpoch, (hold.charges.get(oldestEpoch) ?? 0) + bytes);
		hold.bytes += bytes;
		this.#ledger.charged(hold, bytes);
	}

	/** The index of the first hold for which `isPast` is true, as it is for all after that one. */
	#firstIndex(isPast: (hold: Hold) => boolean): number {
		let low = this.#start;
		let high = this.#held.length;
		while (low < high) {
			const middle = (low + high) >>> 1;
			const hold = this.#held[middle];
			if (hold !== undefined && isPast(hold)) {
				high = middle;
			} else {
				low = middle + 1;
			}
		}
		return low;
	}
}
