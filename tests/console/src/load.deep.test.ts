/**
 * A table of many resources that change, and the overview of them, in Chromium: rows are painted before the snapshot has ended,
 * changes and scrolling cost few frames, and memory does not grow. Prints what it measures.
 *
 *     pnpm test:soak    100,000 resources for ten minutes
 */
import { create } from "@bufbuild/protobuf";
import { Workload, WorkloadSchema } from "@plinth/example-catalog";
import { idOf, resourceOf } from "@plinth/resource";
import type { Server } from "@plinth/server";
import { describeWith, seconds } from "@plinth/test-support";
import type { Page } from "playwright-core";
import { afterAll, expect, inject, it, onTestFinished } from "vitest";
import { browserMemory, closeBrowser, openPage } from "./browser.fixture.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

const isSoak = inject("testLength").factor > 1;
const total = isSoak ? 100_000 : 20_000;
const changesPerSecond = 500;
const lengthSeconds = isSoak ? seconds(30) : 10;

function nameOf(at: number): string {
	return `w-${String(at).padStart(6, "0")}`;
}

async function declare({ client }: Server, at: number, host: string): Promise<void> {
	const data = create(WorkloadSchema, { host, ports: { http: 80 } });
	await client.write({ resource: resourceOf(Workload, { id: idOf(Workload, nameOf(at)), data }) });
}

async function fill(server: Server): Promise<void> {
	const batch = 500;
	for (let begun = 0; begun < total; begun += batch) {
		await Promise.all(
			Array.from({ length: batch }, (_, each) => declare(server, begun + each, "10.0.0.1")),
		);
	}
}

/**
 * Changes resources at that rate, or as fast as a busy machine can. The returned function ends that, and resolves to how many
 * were changed once all writes have ended.
 */
function change(server: Server): () => Promise<number> {
	let changed = 0;
	const writes = new Set<Promise<void>>();
	const startMs = performance.now();
	const timer = setInterval(() => {
		const due = ((performance.now() - startMs) / 1_000) * changesPerSecond;
		for (; changed < due && writes.size < changesPerSecond; changed += 1) {
			// Every tenth change is one of a row in sight.
			const at = changed % 10 === 0 ? changed % 200 : (changed * 7_919) % total;
			const write = declare(server, at, `10.1.${changed % 256}.1`);
			writes.add(write);
			write.then(() => writes.delete(write)).catch(() => {});
		}
	}, 50);
	onTestFinished(() => clearInterval(timer));
	return async () => {
		clearInterval(timer);
		// One that has failed is still there.
		await Promise.all(writes);
		return changed;
	};
}

interface Frames {
	readonly perSecond: number;
	readonly longestMs: number;
}

/** Counts the frames of a page while it scrolls up and down, and the longest time between two, in milliseconds. */
function framesWhileScrolling(page: Page, forMs: number): Promise<Frames> {
	return page.evaluate(
		(ms) =>
			new Promise<Frames>((resolve) => {
				const startMs = performance.now();
				const scroller = document.querySelector(".rows");
				let [frames, longestMs, lastMs] = [0, 0, startMs];
				const onFrame = () => {
					const nowMs = performance.now();
					longestMs = Math.max(longestMs, nowMs - lastMs);
					lastMs = nowMs;
					frames += 1;
					if (scroller !== null) {
						// There and back each ten seconds.
						const phase = ((nowMs - startMs) / 10_000) % 1;
						scroller.scrollTop = 60_000 * (phase < 0.5 ? phase : 1 - phase);
					}
					if (nowMs - startMs < ms) {
						requestAnimationFrame(onFrame);
					} else {
						resolve({ perSecond: (frames * 1_000) / (nowMs - startMs), longestMs });
					}
				};
				requestAnimationFrame(onFrame);
			}),
		forMs,
	);
}

function print(text: string): void {
	process.stdout.write(`${text}\n`);
}

describeWith("chromium")(`a table of ${total} resources`, () => {
	it("paints rows before the snapshot has ended, follows changes, and keeps its memory", async () => {
		const { server, url } = await startCatalog();
		await fill(server);
		const base = await emptyPage(url);
		const watches = await openWatches(server);

		const { page } = await openPage("about:blank");
		await page.addInitScript(() => {
			const first = { ms: 0, phase: "" };
			Object.assign(globalThis, { firstRow: first });
			new MutationObserver((_, observer) => {
				if (document.querySelector("[data-name]") !== null) {
					first.ms = performance.now();
					first.phase = document.querySelector("[data-phase]")?.getAttribute("data-phase") ?? "";
					observer.disconnect();
				}
			}).observe(document, { childList: true, subtree: true });
		});
		await page.goto(`${url}#/types/catalog.v1.Workload`);
		await page.getByText(isSoak ? "100k resources" : "20,000 resources").waitFor();
		const completeMs = await page.evaluate(() => performance.now());
		const first = await page.evaluate(
			() => (globalThis as unknown as { firstRow: { ms: number; phase: string } }).firstRow,
		);
		print(`first rows after ${first.ms.toFixed()} ms, all after ${completeMs.toFixed()} ms`);
		expect(first.phase).toBe("loading");

		await staysSmooth(server, page, base);
		// The server spends on the page what one watch costs.
		expect(await openWatches(server)).toBe(watches + 1);

		// The last change arrives.
		await page.locator(".rows").evaluate((rows) => {
			rows.scrollTop = 0;
		});
		await declare(server, 0, "the.last.example");
		await page.locator(`[data-name="${nameOf(0)}"]`, { hasText: "the.last.example" }).waitFor();
	});

	it("is shown by the overview, which keeps its memory too", async () => {
		const { server, url } = await startCatalog();
		await fill(server);
		const base = await emptyPage(url);
		const watches = await openWatches(server);
		const { page } = await openPage(url);
		await page.locator('[data-phase="live"]').waitFor();
		await staysSmooth(server, page, base);
		expect(await openWatches(server)).toBe(watches);
	});
});

/** The frames of a page that shows nothing, as a measure of the machine. */
async function emptyPage(url: string): Promise<Frames> {
	const { page } = await openPage(`${url}#/nowhere`);
	await page.getByText("Not found").waitFor();
	const frames = await framesWhileScrolling(page, 5_000);
	await page.close();
	return frames;
}

/** How many watches the server has open. */
async function openWatches({ address }: Server): Promise<number> {
	const response = await fetch(`${address}/plinth.server.v1.ServerService/GetOverview`, {
		method: "POST",
		headers: { "content-type": "application/json" },
		body: "{}",
	});
	const { overview } = await response.json();
	return Number(overview.storage.watches);
}

/** Measures an open page while resources change, and prints what it finds. */
async function staysSmooth(server: Server, page: Page, base: Frames): Promise<void> {
	const stop = change(server);
	await framesWhileScrolling(page, 5_000);
	const before = await browserMemory(page);
	const frames = await framesWhileScrolling(page, lengthSeconds * 1_000);
	const after = await browserMemory(page);
	const changed = await stop();
	print(
		`${frames.perSecond.toFixed(1)} frames a second, the longest ${frames.longestMs.toFixed()} ms; ` +
			`an empty page: ${base.perSecond.toFixed(1)}, ${base.longestMs.toFixed()} ms`,
	);
	print(`${changed} changes; memory ${before.toFixed()} MiB before, ${after.toFixed()} MiB after`);
	// Only by hand, on a machine that does nothing else.
	if (isSoak) {
		expect(frames.perSecond).toBeGreaterThan(Math.min(30, base.perSecond / 2));
	}
	expect(after).toBeLessThan(before * (isSoak ? 1.5 : 2));
}
