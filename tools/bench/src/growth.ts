import { unlessQuick } from "./options.ts";
import { printTable, type Row } from "./print-table.ts";
import { format, quantile } from "./statistics.ts";

/** Sets up so much, does the work, and returns its cost per unit, in the unit of the table. */
export type Workload = (size: number) => number | Promise<number>;

export interface GrowthOptions {
	/** How often each size is measured; the median counts. 3 by default, and 1 in a short run. */
	readonly rounds?: number;
}

/**
 * A table of what a unit of work costs as its surroundings grow: at N, 10 N and 100 N, and the ratio of the last to
 * the first with the quartiles of the rounds. A ratio near 1 says that the cost does not depend on the size.
 */
export class GrowthTable {
	readonly #title: string;
	readonly #unit: string;
	readonly #rows: Row[] = [];

	/**
	 * @param title - what is measured, and what grows.
	 * @param unit - the unit of the figures, such as `µs per read`.
	 */
	constructor(title: string, unit: string) {
		this.#title = title;
		this.#unit = unit;
	}

	/**
	 * Measures a workload at N, 10 N and 100 N in turns, and adds its row. A first run at the smallest size compiles the
	 * code and does not count.
	 */
	async measure(
		name: string,
		smallest: number,
		workload: Workload,
		{ rounds = unlessQuick(3, 1) }: GrowthOptions = {},
	): Promise<void> {
		const sizes = [smallest, 10 * smallest, 100 * smallest];
		await workload(smallest);
		const figures: number[][] = [];
		for (let round = 0; round < rounds; round++) {
			const ofRound: number[] = [];
			for (const size of sizes) {
				ofRound.push(await workload(size));
			}
			figures.push(ofRound);
		}
		const ratios = figures.map(
			(ofRound) => (ofRound.at(-1) ?? Number.NaN) / (ofRound[0] ?? Number.NaN),
		);
		const [low, middle, high] = [0.25, 0.5, 0.75].map((share) => format(quantile(ratios, share)));
		this.#rows.push({
			"": name,
			N: smallest.toLocaleString("en-US"),
			...Object.fromEntries(
				["at N", "at 10 N", "at 100 N"].map((column, at) => [
					column,
					format(
						quantile(
							figures.map((ofRound) => ofRound[at] ?? Number.NaN),
							0.5,
						),
					),
				]),
			),
			"100 N ÷ N": `${middle} (${low} to ${high})`,
		});
	}

	print(): void {
		printTable(`${this.#title}, ${this.#unit}`, this.#rows);
	}
}

/** Runs something, and returns the microseconds that the process has computed meanwhile, in all of its threads. */
export async function computedMicroseconds(run: () => unknown): Promise<number> {
	const start = process.cpuUsage();
	await run();
	const { user, system } = process.cpuUsage(start);
	return user + system;
}
