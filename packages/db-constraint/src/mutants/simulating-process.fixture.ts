/**
 * Simulates mutants, one after the other, as its parent process asks. It runs with `plant-fault.fixture.ts`.
 */
import { readArguments } from "../simulation/arguments.fixture.ts";
import { simulate } from "../simulation/simulation.fixture.ts";
import { planted } from "./planted-fault.fixture.ts";
import { isOrder, type Order, type Report } from "./simulation-order.fixture.ts";

// Thousands of conflicts are thrown; capturing their stacks would only cost time.
Error.stackTraceLimit = 0;

process.on("message", (order) => {
	if (isOrder(order)) {
		void carryOut(order);
	}
});

// Its parent has ended.
process.once("disconnect", () => process.exit());

/** Reports after each seed, so that the parent knows that it gets on. */
async function carryOut({ fault, from, runs, args }: Order): Promise<void> {
	planted.fault = fault;
	const { options } = readArguments(args);
	for (let seed = from; seed < from + runs; seed++) {
		const { violation } = await simulate(seed, options);
		if (violation !== undefined) {
			report({ kind: "found", seed, promise: violation.promise, message: violation.message });
			return;
		}
		report({ kind: "kept", seed });
	}
	report({ kind: "done" });
}

function report(message: Report): void {
	process.send?.(message);
}
