/** The tables of a run. */
import { ComparisonTable, type Figures, format } from "@plinth/bench";
import type { Round, Workload } from "./workloads.ts";

/** The rounds of each contender, those that count. */
export type Rounds = ReadonlyMap<string, readonly Round[]>;

/** Prints the rounds of a workload when they are over, and the medians of all workloads at the end. */
export class Report {
	readonly #costs: ComparisonTable;
	readonly #rates: ComparisonTable;
	readonly #events: ComparisonTable;
	#hasCalls = false;
	#hasEvents = false;

	constructor(baseline: string) {
		this.#costs = new ComparisonTable(
			"Processor time of the server per call, callers on connections (lower is better)",
			"µs",
			{ baseline },
		);
		this.#rates = new ComparisonTable("Calls per second (higher is better)", "/s", { baseline });
		this.#events = new ComparisonTable(
			"Events per second of the server's processor time, watches on connections (higher is better)",
			"/s",
			{ baseline },
		);
	}

	add({ name, isFanOut }: Workload, rounds: Rounds): void {
		printRounds(name, isFanOut ? "event" : "call", rounds);
		if (isFanOut) {
			this.#hasEvents = true;
			this.#events.add(
				name,
				figuresOf(rounds, ({ cost }) => 1e6 / cost),
			);
		} else {
			this.#hasCalls = true;
			this.#costs.add(
				name,
				figuresOf(rounds, ({ cost }) => cost),
			);
			this.#rates.add(
				name,
				figuresOf(rounds, ({ rate }) => rate),
			);
		}
	}

	print(): void {
		if (this.#hasCalls) {
			this.#costs.print();
			this.#rates.print();
		}
		if (this.#hasEvents) {
			this.#events.print();
		}
	}
}

function printRounds(name: string, unit: string, rounds: Rounds): void {
	console.log(`\n${name}: µs per ${unit} (${unit}s per second), by round`);
	for (const [contender, own] of rounds) {
		const cells = own.map(({ cost, rate }) => `${format(cost)} (${format(rate)})`);
		console.log(`  ${contender}: ${cells.join(", ")}`);
	}
}

function figuresOf(
	rounds: Rounds,
	figure: (round: Round) => number,
): Readonly<Record<string, Figures>> {
	return Object.fromEntries([...rounds].map(([name, own]) => [name, own.map(figure)]));
}
