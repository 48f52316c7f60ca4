import { execFileSync } from "node:child_process";
import type { IndexCount } from "./contender.ts";
import type { HeapUse } from "./measure-heap.ts";
import { measureHeap } from "./measure-heap.ts";
import { measureSpeed, operations, type Speed } from "./measure-speed.ts";

/**
 * Measures the cache against its floor (bare nested maps) and a library's B-tree, each size in a
 * process of its own. `node bench/cache.bench.ts [size…]`; without arguments, 1 k, 100 k and 1 M.
 * Fails where the run is void: where the floor itself is slow at 1 k.
 */
const [first, ...rest] = process.argv.slice(2);

if (first === "speed" || first === "heap") {
	const indexes = rest[1] === "5" ? 5 : rest[1] === "1" ? 1 : 0;
	const measure = first === "speed" ? measureSpeed : measureHeap;
	process.stdout.write(JSON.stringify(measure(Number(rest[0]), indexes)));
} else {
	const sizes = first === undefined ? [1000, 100_000, 1_000_000] : [first, ...rest].map(Number);
	for (const size of sizes) {
		for (const indexes of [0, 1, 5] as const) {
			printSpeeds(size, indexes, inChild("speed", size, indexes));
		}
	}
	printHeap(
		sizes.flatMap((size) => [0, 1, 5].map((indexes) => inChild<HeapUse>("heap", size, indexes))),
	);
}

/** Runs a part in a process that has room and does not freeze what is shared, as in production. */
function inChild<T = Speed[]>(...args: readonly (string | number)[]): T {
	const flags = ["--expose-gc", "--max-old-space-size=18000"];
	const out = execFileSync(
		process.execPath,
		[...flags, import.meta.filename, ...args.map(String)],
		{
			env: { ...process.env, NODE_ENV: "production" },
			stdio: ["ignore", "pipe", "inherit"],
			maxBuffer: 1 << 24,
		},
	);
	return JSON.parse(out.toString());
}

function printSpeeds(size: number, indexes: IndexCount, speeds: readonly Speed[]): void {
	const count = `${size.toLocaleString("en")} resources, ${indexes} further indexes`;
	console.log(`\n${count}: nanoseconds an operation`);
	const of = (contender: string, operation: string) =>
		speeds.find((speed) => speed.contender === contender && speed.operation === operation)?.ns;
	const rows = operations.flatMap((operation) => {
		const cache = of("cache", operation);
		const floor = of("bare maps", operation);
		const library = of("sorted-btree", operation);
		return cache === undefined || floor === undefined || library === undefined
			? []
			: [
					{
						operation,
						"bare maps": Math.round(floor),
						cache: Math.round(cache),
						"sorted-btree": Math.round(library),
						"cache : maps": (cache / floor).toFixed(2),
						"btree : cache": (library / cache).toFixed(1),
					},
				];
	});
	console.table(rows);
	const floor = of("bare maps", "get") ?? Number.POSITIVE_INFINITY;
	if (size === 1000 && floor > 150) {
		console.log(
			`VOID: the floor takes ${Math.round(floor)} ns a get at 1 k, and must take 150 at most`,
		);
		process.exitCode = 1;
	}
}

function printHeap(uses: readonly HeapUse[]): void {
	console.log("\nbytes of heap for each resource");
	console.table(uses);
}
