if (process.env.NODE_ENV !== "production") {
	throw new Error("benches run in production mode: use `pnpm bench`");
}

export {
	ComparisonTable,
	type Figures,
	interleave,
	interleaveSteps,
	type Steps,
} from "./comparison.ts";
export { computedMicroseconds, GrowthTable, type Workload } from "./growth.ts";
export {
	computedNanosecondsPer,
	heapUsed,
	type Load,
	latencyCells,
	nanosecondsPer,
	runCallers,
} from "./measure.ts";
export { numberOption, otherCheckout, textOption, unlessQuick } from "./options.ts";
export { printTable, type Row } from "./print-table.ts";
export { format, quantile } from "./statistics.ts";
