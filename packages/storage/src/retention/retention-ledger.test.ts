import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { OrderedMap } from "../state-store/ordered-map.ts";
import { type FamilyHolds, type Hold, RetentionLedger } from "./retention-ledger.ts";

/** The part of the ledger that is notified of dead values, where planted faults are. */
type Books = Pick<FamilyHolds, "hold" | "resourceDied" | "pageDied">;

/** What happens to the state, and who holds snapshots of it. */
type Step =
	| { readonly kind: "put" | "delete"; readonly key: number; readonly bytes: number }
	| { readonly kind: "hold"; readonly family: number; readonly subject: number }
	| { readonly kind: "release"; readonly which: number }
	| { readonly kind: "trim"; readonly deaths: number }
	| { readonly kind: "shrink"; readonly percent: number };

const steps = fc.array(
	fc.oneof(
		{
			weight: 5,
			arbitrary: fc.record({
				kind: fc.constantFrom("put" as const, "delete" as const),
				key: fc.nat(5),
				bytes: fc.integer({ min: 1, max: 1000 }),
			}),
		},
		{
			weight: 2,
			arbitrary: fc.record({
				kind: fc.constant("hold" as const),
				family: fc.nat(1),
				subject: fc.nat(3),
			}),
		},
		{
			weight: 2,
			arbitrary: fc.record({ kind: fc.constant("release" as const), which: fc.nat() }),
		},
		{
			weight: 2,
			arbitrary: fc.record({ kind: fc.constant("trim" as const), deaths: fc.nat(4) }),
		},
		{
			weight: 1,
			arbitrary: fc.record({
				kind: fc.constant("shrink" as const),
				percent: fc.integer({ min: 0, max: 100 }),
			}),
		},
	),
	{ maxLength: 120, size: "max" },
);

interface Value {
	readonly family: number;
	readonly bornAt: number;
	readonly bytes: number;
	diedAt: number;
	/** Whether the log has dropped it, if it has died. */
	isTrimmed: boolean;
}

interface Held {
	readonly hold: Hold;
	readonly family: number;
	readonly subject: string | undefined;
	readonly revision: number;
}

/** What the ledger counts, from all values and all held snapshots. */
class Model {
	readonly values: Value[] = [];
	/** The oldest first. */
	readonly held: Held[] = [];
	/** Of what is held: the subject that has held anything for longest first. */
	readonly #subjects = new Set<string>();

	hold(held: Held): void {
		this.held.push(held);
		if (held.subject !== undefined) {
			this.#subjects.add(held.subject);
		}
	}

	release(index: number): Held | undefined {
		const [released] = this.held.splice(index, 1);
		if (released?.subject && this.held.every(({ subject }) => subject !== released.subject)) {
			this.#subjects.delete(released.subject);
		}
		return released;
	}

	/** The snapshots that are charged, with their bytes: each value is charged to the newest that has seen it. */
	charged(): ReadonlyMap<Held, number> {
		const bytes = new Map(this.held.map((each) => [each, 0]));
		for (const value of this.values.filter(({ isTrimmed }) => isTrimmed)) {
			const newest = this.held.findLast(
				({ family, revision }) =>
					family === value.family && value.bornAt <= revision && revision < value.diedAt,
			);
			if (newest !== undefined) {
				bytes.set(newest, (bytes.get(newest) ?? 0) + value.bytes);
			}
		}
		return new Map([...bytes].filter(([, each]) => each > 0));
	}

	bytes(isMeant: (held: Held) => boolean = () => true): number {
		return [...this.charged()].reduce((sum, [held, each]) => sum + (isMeant(held) ? each : 0), 0);
	}

	/** The specification of `RetentionLedger.shrink`. */
	shrink(maxBytes: number): Hold[] {
		const ended: Hold[] = [];
		while (this.bytes() > maxBytes) {
			const charged = [...this.charged().keys()];
			const bytesOf = (name: string) => this.bytes(({ subject }) => subject === name);
			const most = Math.max(...[...this.#subjects].map(bytesOf));
			const largest = [...this.#subjects].find((name) => bytesOf(name) === most);
			const next =
				most > maxBytes / 4
					? charged.find(({ subject }) => subject === largest)
					: (charged.find(({ subject }) => subject !== undefined) ?? charged[0]);
			const released = next && this.release(this.held.indexOf(next));
			ended.push(...(released === undefined ? [] : [released.hold]));
		}
		return ended;
	}
}

/**
 * Takes the steps with the ledger and with the model, and compares what they say is retained, and which
 * snapshots they end, after each. Deaths reach the ledger when the log drops them, in their order.
 */
function compare(sequence: readonly Step[], fault: (books: FamilyHolds) => Books): void {
	const ledger = new RetentionLedger();
	const books = [fault(ledger.family()), fault(ledger.family())];
	const model = new Model();
	const stored = new Map<number, Value>();
	const inLog: Value[] = [];
	let ended: Hold[] = [];
	let revision = 0;
	let epoch = 0;
	for (const step of sequence) {
		switch (step.kind) {
			case "put":
			case "delete": {
				revision += 1;
				const former = stored.get(step.key);
				stored.delete(step.key);
				if (former !== undefined) {
					former.diedAt = revision;
					inLog.push(former);
				}
				if (step.kind === "put") {
					const { bytes, key } = step;
					const value = {
						...{ family: key % 2, bornAt: revision, diedAt: Number.POSITIVE_INFINITY },
						...{ bytes, isTrimmed: false },
					};
					model.values.push(value);
					stored.set(key, value);
				}
				break;
			}
			case "hold": {
				epoch += 1;
				const { family } = step;
				const subject = step.subject === 0 ? undefined : `subject-${step.subject}`;
				const onEnded = () => ended.push(hold);
				// There are two families.
				const hold = books[family]!.hold({ revision, epoch }, { subject, onEnded });
				model.hold({ hold, family, subject, revision });
				break;
			}
			case "release": {
				const released = model.release(step.which % Math.max(1, model.held.length));
				released?.hold.release();
				// Releasing twice has no effect.
				released?.hold.release();
				break;
			}
			case "shrink": {
				const maxBytes = Math.floor((model.bytes() * step.percent) / 100);
				ended = [];
				ledger.shrink(maxBytes);
				const inOrder = (holds: readonly Hold[]) => holds.map(({ order }) => order);
				expect(inOrder(ended)).toEqual(inOrder(model.shrink(maxBytes)));
				break;
			}
			case "trim":
				for (const value of inLog.splice(0, step.deaths)) {
					value.isTrimmed = true;
					books[value.family]?.resourceDied(value.bornAt, value.diedAt, value.bytes);
				}
		}
		expect(ledger.bytes).toBe(model.bytes());
		expect(ledger.size).toBe(model.held.length);
		for (const each of [undefined, "subject-1", "subject-2", "subject-3"]) {
			expect(ledger.bytesOf(each)).toBe(model.bytes(({ subject }) => subject === each));
		}
	}
}

const property = (fault: (books: FamilyHolds) => Books) =>
	fc.property(steps, (sequence) => compare(sequence, fault));

describe("RetentionLedger", () => {
	it("counts dead values and ends snapshots like a model", () => {
		fc.assert(
			property((books) => books),
			{ numRuns: 400 },
		);
	});

	it.each([
		[
			"charges values that no snapshot has seen",
			(books: FamilyHolds): Books => ({
				hold: (...args) => books.hold(...args),
				pageDied: (...args) => books.pageDied(...args),
				resourceDied: (_bornAt, diedAt, bytes) => books.resourceDied(0, diedAt, bytes),
			}),
		],
		[
			"forgets that an older snapshot has seen a value too",
			(books: FamilyHolds): Books => ({
				hold: (...args) => books.hold(...args),
				pageDied: (...args) => books.pageDied(...args),
				resourceDied: (bornAt, diedAt, bytes) =>
					books.resourceDied(Math.max(bornAt, diedAt - 2), diedAt, bytes),
			}),
		],
		[
			"takes a death for one of now, though snapshots were taken since",
			(books: FamilyHolds): Books => ({
				hold: (...args) => books.hold(...args),
				pageDied: (...args) => books.pageDied(...args),
				resourceDied: (bornAt, _diedAt, bytes) =>
					books.resourceDied(bornAt, Number.MAX_SAFE_INTEGER, bytes),
			}),
		],
	])("is distinguished from one that %s", (_name, fault) => {
		expect(fc.check(property(fault), { numRuns: 400 }).failed).toBe(true);
	});

	it("counts the pages of an index that only held snapshots use", () => {
		fc.assert(
			fc.property(
				fc.array(
					fc.oneof(
						{
							weight: 6,
							arbitrary: fc.record({
								kind: fc.constantFrom("set" as const, "delete" as const),
								from: fc.nat(600),
								count: fc.integer({ min: 1, max: 150 }),
							}),
						},
						{ weight: 2, arbitrary: fc.record({ kind: fc.constant("hold" as const) }) },
						{
							weight: 1,
							arbitrary: fc.record({ kind: fc.constant("release" as const), which: fc.nat() }),
						},
					),
					{ maxLength: 60, size: "max" },
				),
				(sequence) => {
					const ledger = new RetentionLedger();
					const books = ledger.family();
					const map = new OrderedMap<number>((epoch, bytes) => books.pageDied(epoch, bytes));
					const held: { hold: Hold; pages: ReadonlyMap<object, number> }[] = [];
					for (const step of sequence) {
						if (step.kind === "hold") {
							const taken = map.snapshot();
							const hold = books.hold({ revision: 0, epoch: taken.epoch }, { onEnded: () => {} });
							held.push({ hold, pages: taken.pages() });
						} else if (step.kind === "release") {
							held.splice(step.which % Math.max(1, held.length), 1)[0]?.hold.release();
						} else {
							for (let each = step.from; each < step.from + step.count; each++) {
								const key = String(each).padStart(5, "0");
								if (step.kind === "set") {
									map.set(key, each);
								} else {
									map.delete(key);
								}
							}
						}
						const current = map.snapshot().pages();
						const retained = new Map(held.flatMap(({ pages }) => [...pages]));
						let bytes = 0;
						for (const [page, pageBytes] of retained) {
							bytes += current.has(page) ? 0 : pageBytes;
						}
						expect(ledger.bytes).toBe(bytes);
					}
				},
			),
			{ numRuns: 100 },
		);
	});

	it("ends 60,000 snapshots, each of which passes on what it is charged with", () => {
		const ledger = new RetentionLedger();
		const books = ledger.family();
		const count = 60_000;
		let ended = 0;
		for (let revision = 1; revision <= count; revision++) {
			const subject = `subject-${revision}`;
			books.hold({ revision, epoch: revision }, { subject, onEnded: () => ended++ });
		}
		// Each was born before another snapshot, and all die after the last: they move from one to the next.
		for (let bornAt = 1; bornAt <= count; bornAt++) {
			books.resourceDied(bornAt, count + 1, 10);
		}
		ledger.shrink(0);
		expect(ended).toBe(count);
		expect(ledger.size).toBe(0);
	});

	describe("that retains too much", () => {
		function scene() {
			const ledger = new RetentionLedger();
			const books = ledger.family();
			const ended: string[] = [];
			let moment = 0;
			/** A snapshot, and then the death of a value that only it and older ones have seen. */
			function hold(name: string, subject: string | undefined, bytes: number): Hold {
				moment += 1;
				const taken = { revision: moment, epoch: moment };
				const held = books.hold(taken, { subject, onEnded: () => ended.push(name) });
				moment += 1;
				books.resourceDied(moment - 1, moment, bytes);
				return held;
			}
			return { ledger, hold, ended };
		}

		it("ends the oldest of a subject with more than a quarter first, though others are older", () => {
			const { ledger, hold, ended } = scene();
			hold("old", "quiet", 10);
			for (let count = 1; count <= 10; count++) {
				hold(`greedy-${count}`, "greedy", 10);
			}
			ledger.shrink(80);
			expect(ended).toEqual(["greedy-1", "greedy-2", "greedy-3"]);
			expect(ledger.bytesOf("quiet")).toBe(10);
		});

		it("ends the oldest of all if no subject has more than a quarter", () => {
			const { ledger, hold, ended } = scene();
			for (let count = 1; count <= 10; count++) {
				hold(`list-${count}`, `subject-${count}`, 10);
			}
			ledger.shrink(80);
			expect(ended).toEqual(["list-1", "list-2"]);
		});

		it("ends the server's own snapshots last", () => {
			const { ledger, hold, ended } = scene();
			hold("own", undefined, 1000);
			hold("other", "someone", 10);
			ledger.shrink(1000);
			expect(ended).toEqual(["other"]);
			ledger.shrink(999);
			expect(ended).toEqual(["other", "own"]);
		});

		it("leaves snapshots alone that retain nothing", () => {
			const { ledger, hold, ended } = scene();
			hold("nothing", "someone", 0);
			hold("much", "someone", 10);
			ledger.shrink(0);
			expect(ended).toEqual(["much"]);
		});
	});
});
