import { unlessQuick } from "./options.ts";
import { printTable, type Row } from "./print-table.ts";
import { format, quantile } from "./statistics.ts";

/** Runs one round of a contender, and returns its figure. */
export type Round = () => number | Promise<number>;

/** The figures of a contender, one a round. */
export type Figures = readonly number[];

export interface RoundOptions {
	/** The rounds that count; 15 by default, and 2 in a short run. */
	readonly rounds?: number;
	/** The rounds before, whose figures are dropped; 2 by default, and none in a short run. */
	readonly warmUpRounds?: number;
}

/** The steps of a round, by name: each runs once a round, on what the steps before it have left. */
export type Steps = Readonly<Record<string, Round>>;

/**
 * Runs rounds of all contenders in turn, so that whatever else the machine does affects all of them, and lets
 * each go first equally often.
 */
export async function interleave(
	contenders: Readonly<Record<string, Round>>,
	options?: RoundOptions,
): Promise<Readonly<Record<string, Figures>>> {
	const makers = Object.entries(contenders).map(([name, run]) => [name, () => ({ run })]);
	return (await interleaveSteps(Object.fromEntries(makers), options)).run ?? {};
}

/**
 * As `interleave`, for contenders with state: each is made once a round, and goes through its steps. A step
 * of all contenders is over before the next one begins.
 *
 * @returns the figures by step and contender, in the order in which the contenders were given.
 */
export async function interleaveSteps(
	contenders: Readonly<Record<string, () => Steps | Promise<Steps>>>,
	options: RoundOptions = {},
): Promise<Readonly<Record<string, Readonly<Record<string, Figures>>>>> {
	const { rounds = unlessQuick(15, 2), warmUpRounds = unlessQuick(2, 0) } = options;
	const figures: Record<string, Record<string, number[]>> = {};
	for (let round = 0; round < warmUpRounds + rounds; round++) {
		const made: { readonly name: string; readonly steps: Steps }[] = [];
		for (const [name, make] of Object.entries(contenders)) {
			made.push({ name, steps: await make() });
		}
		const first = round % made.length;
		const inTurn = [...made.slice(first), ...made.slice(0, first)];
		for (const step of new Set(made.flatMap(({ steps }) => Object.keys(steps)))) {
			figures[step] ??= Object.fromEntries(
				made.filter(({ steps }) => steps[step]).map(({ name }) => [name, []]),
			);
			for (const { name, steps } of inTurn) {
				const figure = await steps[step]?.();
				if (figure !== undefined && round >= warmUpRounds) {
					figures[step][name]?.push(figure);
				}
			}
		}
	}
	return figures;
}

export interface TableOptions {
	/** The contender that each of the others is divided by; by default, the first one is divided by each of them. */
	readonly baseline?: string;
}

/**
 * A table of comparisons. Its rows are what is measured; its columns the median of each contender, and the
 * ratio of the first contender to each of the others, or of the others to a baseline: the median over the rounds, with
 * its quartiles.
 */
export class ComparisonTable {
	readonly #title: string;
	readonly #unit: string;
	readonly #baseline: string | undefined;
	readonly #rows: Row[] = [];

	constructor(title: string, unit: string, { baseline }: TableOptions = {}) {
		this.#title = title;
		this.#unit = unit;
		this.#baseline = baseline;
	}

	/** Measures contenders, and adds their row. */
	async measure(
		name: string,
		contenders: Readonly<Record<string, Round>>,
		options?: RoundOptions,
	): Promise<void> {
		this.add(name, await interleave(contenders, options));
	}

	/** Adds a row of figures whose rounds were interleaved. */
	add(
		name: string,
		figures: Readonly<Record<string, Figures>>,
		further: Readonly<Record<string, string>> = {},
	): void {
		const contenders = Object.entries(figures);
		if (contenders.length === 0) {
			throw new Error(`nothing was measured of ${name}`);
		}
		this.#rows.push({
			"": name,
			...Object.fromEntries(
				contenders.map(([contender, own]) => [
					`${contender} ${this.#unit}`,
					format(quantile(own, 0.5)),
				]),
			),
			...Object.fromEntries(this.#ratios(contenders)),
			...further,
		});
	}

	#ratios(contenders: readonly (readonly [string, Figures])[]): readonly [string, string][] {
		const baseline = contenders.find(([name]) => name === this.#baseline);
		if (baseline !== undefined) {
			return contenders
				.filter((each) => each !== baseline)
				.map(([name, own]) => [`${name} ÷ ${baseline[0]}`, ratio(own, baseline[1])]);
		}
		const [subject, ...alternatives] = contenders;
		return alternatives.map(([name, own]) => [`÷ ${name}`, ratio(subject?.[1] ?? [], own)]);
	}

	print(): void {
		printTable(this.#title, this.#rows);
	}
}

/** The ratio of rounds: each figure by the one of the same round. */
function ratio(subject: Figures, alternative: Figures): string {
	const ratios = subject.map((figure, round) => figure / (alternative[round] ?? Number.NaN));
	const [low, middle, high] = [0.25, 0.5, 0.75].map((share) =>
		quantile(ratios, share).toPrecision(3),
	);
	return `${middle} (${low} to ${high})`;
}
