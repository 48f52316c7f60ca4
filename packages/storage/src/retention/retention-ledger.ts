import { Heap } from "./heap.ts";

/**
 * Accounts for the memory that held snapshots retain after the state has replaced or deleted it.
 *
 * A value is alive from when it is stored to when it is replaced or deleted. A snapshot sees the values
 * that were alive when it was taken, and retains them when they are dead. Each dead value is counted once,
 * however many snapshots retain it: it is charged to the newest of them, under the epoch of the oldest.
 *
 * ```
 *   snapshots of a family      s1          s2          s3              now
 *   a value                ├───┼───────────┼───────────┼───────┤ dies: charged to s3, under s1
 *   another                        ├───────┼───┤               dies: charged to s2, under s2
 *   a third                                      ├──┤          dies: no snapshot has seen it
 * ```
 *
 * When a snapshot is released, its charges move to the next older snapshot if that one has seen the value:
 * if its epoch is not below that of the charge. The rest is freed. A charge costs a binary search, and
 * nothing if no snapshot is held.
 *
 * Invariants, checked by a property test against a model that remembers every value:
 * - `bytes` is the size of all dead values that at least one held snapshot has seen.
 * - `bytes` is the sum of the charges of all subjects.
 */
export class RetentionLedger {
	#bytes = 0;
	#opened = 0;
	readonly #holds = new Set<Hold>();
	readonly #subjects = new Map<string | undefined, Subject>();
	/** Of all subjects that have a name. */
	readonly #named = new ChargedHolds();
	/** Subjects over their share, while `shrink` runs. */
	#overShare: OverShare | undefined;

	/** Bytes retained only by held snapshots. */
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

	/** Opens the account of another type family; snapshots see only their own family. */
	family(): FamilyHolds {
		return new FamilyHolds(this);
	}

	/**
	 * Ends held snapshots until at most `maxBytes` are retained. A subject charged with more than a quarter
	 * of that loses its snapshots first, the oldest first; otherwise the oldest snapshot of any subject
	 * ends. The server's own snapshots, which have no subject, end last.
	 */
	shrink(maxBytes: number): void {
		const overShare = new OverShare(maxBytes / 4);
		for (const subject of this.#subjects.values()) {
			overShare.grew(subject);
		}
		this.#overShare = overShare;
		while (this.#bytes > maxBytes) {
			const charged = overShare.largest()?.charged ?? this.#named;
			const hold = charged.oldest() ?? this.#subjects.get(undefined)?.charged.oldest();
			if (hold === undefined) {
				break;
			}
			hold.release();
			hold.onEnded();
		}
		this.#overShare = undefined;
	}

	/** Ends all held snapshots. */
	endAll(): void {
		for (const hold of [...this.#holds]) {
			hold.release();
			hold.onEnded();
		}
	}

	/** For `FamilyHolds`: a snapshot is held. */
	opened(hold: Hold): void {
		this.#opened += 1;
		hold.order = this.#opened;
		this.#holds.add(hold);
		const subject = this.#subjects.get(hold.subject);
		if (subject === undefined) {
			this.#subjects.set(hold.subject, {
				...{ name: hold.subject, order: this.#opened, bytes: 0, holds: 1, rank: undefined },
				charged: new ChargedHolds(),
			});
		} else {
			subject.holds += 1;
		}
	}

	/** For `FamilyHolds`: the hold was released, and is no longer charged with its bytes. */
	closed(hold: Hold): void {
		this.#bytes -= hold.bytes;
		this.#holds.delete(hold);
		const subject = this.#subjects.get(hold.subject);
		if (subject === undefined) {
			return;
		}
		subject.bytes -= hold.bytes;
		subject.holds -= 1;
		if (subject.holds === 0) {
			this.#subjects.delete(hold.subject);
		}
		if (hold.bytes > 0) {
			subject.charged.released();
			if (hold.subject !== undefined) {
				this.#named.released();
			}
		}
	}

	/** For `FamilyHolds`: the charge of a hold has grown by `bytes`. */
	charged(hold: Hold, bytes: number): void {
		const subject = this.#subjects.get(hold.subject);
		if (subject === undefined || bytes === 0) {
			return;
		}
		this.#bytes += bytes;
		subject.bytes += bytes;
		if (hold.bytes === bytes) {
			subject.charged.add(hold);
			if (hold.subject !== undefined) {
				this.#named.add(hold);
			}
		}
		this.#overShare?.grew(subject);
	}
}

interface Subject {
	readonly name: string | undefined;
	/** The order in which subjects appeared. */
	readonly order: number;
	bytes: number;
	/** The number of its held snapshots. */
	holds: number;
	readonly charged: ChargedHolds;
	/** Its entry among the subjects over their share. */
	rank: Rank | undefined;
}

/** Holds with charges. Released ones are removed when they reach the top, or when they are half of all. */
class ChargedHolds {
	readonly #heap = new Heap<Hold>((a, b) => a.order < b.order);
	#released = 0;

	add(hold: Hold): void {
		this.#heap.push(hold);
	}

	/** One of them was released. */
	released(): void {
		this.#released += 1;
		if (this.#released * 2 > this.#heap.size) {
			this.#heap.filter((hold) => !hold.isReleased);
			this.#released = 0;
		}
	}

	/** The oldest that is held. */
	oldest(): Hold | undefined {
		for (;;) {
			const hold = this.#heap.peek();
			if (hold === undefined || !hold.isReleased) {
				return hold;
			}
			this.#heap.pop();
			this.#released -= 1;
		}
	}
}

interface Rank {
	readonly subject: Subject;
	/** The subject's bytes when it was added: it may have fewer by now. */
	readonly bytes: number;
}

/** Subjects with a name that are charged with more than their share, the largest first. */
class OverShare {
	readonly #share: number;
	readonly #ranks = new Heap<Rank>(
		(a, b) => a.bytes > b.bytes || (a.bytes === b.bytes && a.subject.order < b.subject.order),
	);

	constructor(share: number) {
		this.#share = share;
	}

	/** Call it when the charges of a subject grow. */
	grew(subject: Subject): void {
		if (subject.name !== undefined && subject.bytes > this.#share) {
			subject.rank = { subject, bytes: subject.bytes };
			this.#ranks.push(subject.rank);
		}
	}

	/** The subject with the largest charge. */
	largest(): Subject | undefined {
		for (;;) {
			const rank = this.#ranks.peek();
			if (rank === undefined) {
				return undefined;
			}
			const { subject, bytes } = rank;
			const isRank = subject.rank === rank;
			if (isRank && subject.bytes === bytes) {
				return subject;
			}
			this.#ranks.pop();
			if (isRank) {
				this.grew(subject);
			}
		}
	}
}

/** The holder of a snapshot, which is notified when the snapshot is ended. */
export interface SnapshotHolder {
	/** The subject that the retained memory is charged to; absent for the server itself. */
	readonly subject?: string | undefined;
	/** Called once if the snapshot is ended because it retains too much, or because its storage closes. */
	readonly onEnded: () => void;
}

/** When a snapshot was taken. Both grow with each snapshot of a family, the epoch strictly. */
interface Taken {
	/** The newest revision that the snapshot sees. */
	readonly revision: number;
	/** The newest epoch of the index whose pages the snapshot sees. */
	readonly epoch: number;
}

/** Dead values charged to a hold. */
interface Charge {
	/** The epoch of the oldest snapshot that had seen them when they were charged. */
	readonly oldestEpoch: number;
	bytes: number;
}

/** A snapshot that is held. */
export class Hold {
	readonly revision: number;
	readonly epoch: number;
	readonly subject: string | undefined;
	readonly onEnded: () => void;
	/** The position among all holds, in the order in which they were taken. Set by the ledger. */
	order = 0;
	charges: Heap<Charge> | undefined;
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

	get isReleased(): boolean {
		return this.#family === undefined;
	}

	/** Releases the snapshot. Does nothing if it has ended. */
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
	/** The first index in use: the oldest are usually released first, and shifting the others is too expensive. */
	#start = 0;

	/** Made by `RetentionLedger.family`. */
	constructor(ledger: RetentionLedger) {
		this.#ledger = ledger;
	}

	/**
	 * Registers a snapshot. What was replaced since it was taken is not charged to it, so that must have been in this
	 * iteration of the event loop.
	 */
	hold(taken: Taken, holder: SnapshotHolder): Hold {
		const hold = new Hold(this, taken, holder);
		const newest = this.#before(this.#held.length);
		if (newest === undefined || newest.epoch < hold.epoch) {
			this.#held.push(hold);
		} else {
			this.#held.splice(
				this.#firstIndex((each) => each.epoch > hold.epoch),
				0,
				hold,
			);
		}
		this.#ledger.opened(hold);
		return hold;
	}

	/** A resource of revision `bornAt`, replaced at `diedAt`, is now retained only by snapshots. */
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

	/** A page of the index that was created in that epoch was replaced just now. */
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
		const { charges } = hold;
		hold.charges = undefined;
		if (older !== undefined && charges !== undefined) {
			this.#move(charges, hold.bytes, older);
		}
		this.#ledger.closed(hold);
	}

	/** Moves the charges for the values that an older hold has seen to that hold. */
	#move(charges: Heap<Charge>, chargedBytes: number, older: Hold): void {
		let bytes = chargedBytes;
		for (;;) {
			const youngest = charges.peek();
			if (youngest === undefined || youngest.oldestEpoch <= older.epoch) {
				break;
			}
			charges.pop();
			bytes -= youngest.bytes;
		}
		const others = older.charges ?? charges;
		const [fewer, more] = charges.size < others.size ? [charges, others] : [others, charges];
		if (fewer !== more) {
			for (const charge of fewer.items()) {
				add(more, charge);
			}
		}
		older.charges = more;
		older.bytes += bytes;
		this.#ledger.charged(older, bytes);
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
		hold.charges ??= new Heap((a, b) => a.oldestEpoch > b.oldestEpoch);
		add(hold.charges, { oldestEpoch, bytes });
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

function add(charges: Heap<Charge>, charge: Charge): void {
	const youngest = charges.peek();
	if (youngest?.oldestEpoch === charge.oldestEpoch) {
		youngest.bytes += charge.bytes;
	} else {
		charges.push(charge);
	}
}
