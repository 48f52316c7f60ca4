/**
 * Measures how long a table of many resources takes from the navigation to its first painted rows, and where the time goes.
 * Prints one line a load, and the median. Times are in milliseconds since the navigation.
 *
 *     pnpm first-rows [<resources> [<loads>]]
 */
import { loadavg } from "node:os";
import { create } from "@bufbuild/protobuf";
import { Workload, WorkloadSchema } from "@plinth/example-catalog";
import { idOf, resourceOf } from "@plinth/resource";
import { chromium, type Page } from "playwright-core";
import { startCatalogServer } from "./catalog-server.ts";

const [total = 100_000, loads = 9] = process.argv.slice(2).map(Number);

/** When a page has shown its first rows, and what came before. */
interface Load {
	/** The rows are elements. */
	readonly rowsMs: number;
	/** A frame with them was painted. */
	readonly paintedMs: number;
	/** How many rows the first frame had. */
	readonly rows: number;
	readonly phase: string;
	/** When the scripts had arrived, when the types had, and so on. */
	readonly steps: Readonly<Record<string, number>>;
}

const { server, url } = await startCatalogServer();
const browser = await chromium.launch({
	executablePath: "/usr/bin/chromium",
	args: ["--no-sandbox"],
});
try {
	await fill();
	const measured: Load[] = [];
	for (let load = 0; load <= loads; load += 1) {
		const one = await measure();
		const steps = Object.entries(one.steps).map(([step, ms]) => `${step} ${ms.toFixed()}`);
		print(
			`${load === 0 ? "first: " : ""}painted ${one.paintedMs.toFixed()}, elements ${one.rowsMs.toFixed()}, ` +
				`${one.rows} rows, ${one.phase}; ${steps.join(", ")}`,
		);
		// The first load also reads the files of the page.
		if (load > 0) {
			measured.push(one);
		}
	}
	const painted = measured.map(({ paintedMs }) => paintedMs).sort((a, b) => a - b);
	print(
		`median ${painted[Math.floor(painted.length / 2)]?.toFixed()} ms, from ${painted[0]?.toFixed()} to ` +
			`${painted.at(-1)?.toFixed()} ms; load of the machine ${loadavg()[0]?.toFixed(1)}`,
	);
} finally {
	await browser.close();
	await server.stop();
}

async function fill(): Promise<void> {
	const { client } = server;
	for (let begun = 0; begun < total; begun += 500) {
		await Promise.all(
			Array.from({ length: Math.min(500, total - begun) }, (_, each) =>
				client.write({
					resource: resourceOf(Workload, {
						id: idOf(Workload, `w-${String(begun + each).padStart(6, "0")}`),
						data: create(WorkloadSchema, { host: "10.0.0.1", ports: { http: 80 } }),
					}),
				}),
			),
		);
	}
}

/** Loads the table as a new user would: nothing of it is cached. */
async function measure(): Promise<Load> {
	const context = await browser.newContext({ viewport: { width: 1280, height: 720 } });
	const page = await context.newPage();
	await page.addInitScript(() => {
		// A worker of the page, unlike a shared one, can be asked for its times.
		Reflect.deleteProperty(globalThis, "SharedWorker");
		const first = { rowsMs: 0, paintedMs: 0, rows: 0, phase: "" };
		Object.assign(globalThis, { first });
		new MutationObserver((_, observer) => {
			const rows = document.querySelectorAll("[data-name]").length;
			if (rows > 0) {
				observer.disconnect();
				first.rowsMs = performance.now();
				first.rows = rows;
				first.phase = document.querySelector("[data-phase]")?.getAttribute("data-phase") ?? "";
				requestAnimationFrame(() => {
					// After the frame.
					const { port1, port2 } = new MessageChannel();
					port2.onmessage = () => {
						first.paintedMs = performance.now();
					};
					port1.postMessage(undefined);
				});
			}
		}).observe(document, { childList: true, subtree: true });
	});
	await page.goto(`${url}#/types/catalog.v1.Workload`);
	await page.waitForFunction(
		() => (globalThis as unknown as { first: { paintedMs: number } }).first.paintedMs > 0,
		undefined,
		{ timeout: 60_000 },
	);
	const first = await page.evaluate(
		() => (globalThis as unknown as { first: Omit<Load, "steps"> }).first,
	);
	const steps = await stepsOf(page);
	await context.close();
	return { ...first, steps };
}

async function stepsOf(page: Page): Promise<Readonly<Record<string, number>>> {
	const own = await page.evaluate(() =>
		performance
			.getEntriesByType("resource")
			.map((entry) => [entry.name, (entry as PerformanceResourceTiming).responseEnd] as const),
	);
	const origin = await page.evaluate(() => performance.timeOrigin);
	const ofWorker = await page.workers()[0]?.evaluate((pageOrigin) => {
		const offset = performance.timeOrigin - pageOrigin;
		const entries = performance.getEntriesByType("resource") as PerformanceResourceTiming[];
		return {
			started: offset,
			calls: entries.map(
				({ name, startTime, responseEnd }) =>
					[name, startTime + offset, responseEnd + offset] as const,
			),
		};
	}, origin);
	const scripts = own.filter(([name]) => name.endsWith(".js")).map(([, end]) => end);
	const types = (name: string) => name.endsWith("/ListTypes");
	return {
		scripts: Math.max(...scripts),
		"types in the page": own.find(([name]) => types(name))?.[1] ?? 0,
		"worker begins": ofWorker?.started ?? 0,
		"types asked for": ofWorker?.calls.find(([name]) => types(name))?.[1] ?? 0,
		"types in the worker": ofWorker?.calls.find(([name]) => types(name))?.[2] ?? 0,
	};
}

function print(text: string): void {
	process.stdout.write(`${text}\n`);
}
