/** Stands in for a process that simulates: how it ends depends on the seed. */
import { isOrder, type Report } from "./simulation-order.fixture.ts";

let hasFound = false;

process.on("message", (order) => {
	if (!isOrder(order)) {
		return;
	}
	switch (order.from) {
		case 0:
			throw new Error("this mutant ends its process");
		case 1:
			report({ kind: "found", seed: 1, promise: 3, message: "and ends the process later" });
			break;
		default:
			// What the former mutant has left behind.
			if (order.runs === 2 && hasFound) {
				process.exit(1);
			}
			report({ kind: "done" });
	}
	hasFound = order.from === 1;
});

function report(message: Report): void {
	process.send?.(message);
}
