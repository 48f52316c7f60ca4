/*
 * The cache against its floor (bare nested maps), and against the cache of another checkout (`--against=path`), each
 * size in its own process. `--sizes=1000,100000`; by default 1 k, 100 k and 1 M. Fails if the run is void: if the floor itself is slow at 1 k.
 */
import { execFileSync } from "node:child_process";
import { ComparisonTable, printTable, textOption, unlessQuick } from "@plinth/bench";
import type { IndexCount } from "./contender.ts";
import { type HeapUse, measureHeap } from "./measure-heap.ts";
import { measureSpeed, operations, type Speeds } from "./measure-speed.ts";

const part = textOption("part");
const indexCounts = [0, 1, 5] as const;

if (part === "speed" || part === "heap") {
	const size = Number(textOption("size"));
	const indexes = indexCounts.find((count) => count === Number(textOption("indexes"))) ?? 0;
	const measure = part === "speed" ? measureSpeed : measureHeap;
	process.stdout.write(JSON.stringify(await measure(size, indexes)));
} else {
	const sizes = (textOption("sizes") ?? unlessQuick("1000,100000,1000000", "1000"))
		.split(",")
		.map(Number);
	for (const size of sizes) {
		for (const indexes of indexCounts) {
			printSpeeds(size, indexes, inChild<Speeds>("speed", size, indexes));
		}
	}
	printTable(
		"bytes of heap for each resource",
		sizes.flatMap((size) =>
			indexCounts.map((indexes) => ({ ...inChild<HeapUse>("heap", size, indexes) })),
		),
	);
}

/** Runs a part in a process with enough memory. */
function inChild<T>(part: string, size: number, indexes: IndexCount): T {
	const out = execFileSync(
		process.execPath,
		[
			...["--expose-gc", "--max-old-space-size=18000", import.meta.filename],
			...[`--part=${part}`, `--size=${size}`, `--indexes=${indexes}`],
			...process.argv.filter((each) => each === "--quick" || each.startsWith("--against=")),
		],
		{ stdio: ["ignore", "pipe", "inherit"], maxBuffer: 1 << 28 },
	);
	return JSON.parse(out.toString());
}

function printSpeeds(size: number, indexes: IndexCount, speeds: Speeds): void {
	const table = new ComparisonTable(
		`${size.toLocaleString("en")} resources, ${indexes} further indexes`,
		"ns",
	);
	for (const operation of operations) {
		const figures = speeds[operation];
		if (figures !== undefined) {
			table.add(operation, figures);
		}
	}
	table.print();
	const floor = Math.min(...(speeds.get?.["bare maps"] ?? []));
	if (size === 1000 && floor > 150) {
		console.log(
			`VOID: the floor needs ${Math.round(floor)} ns a get at 1 k, and must need 150 at most`,
		);
		process.exitCode = 1;
	}
}
