import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ReferenceMetrics } from "@plinth/db-constraint";
import { typeOf } from "@plinth/resource";
import { describe, expect, it, onTestFinished } from "vitest";
import { Artist, artist, musicModule } from "../../testdata/music.ts";
import { startServer } from "../started-server.fixture.ts";
import { observeDeliveries } from "./delivery-metrics.ts";
import { createMetrics } from "./metrics.ts";
import { observeReferences } from "./reference-metrics.ts";

/** The lines of the text format that begin so, without the name. */
function linesOf(text: string, name: string): readonly string[] {
	return text
		.split("\n")
		.filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `))
		.map((line) => line.slice(name.length));
}

describe("the metrics of the embedded storage", () => {
	it("tell how many commits share a write, and how long they wait for it", async () => {
		const directory = await mkdtemp(join(tmpdir(), "plinth-batches-"));
		onTestFinished(() => rm(directory, { recursive: true, force: true }));
		const server = await startServer({
			modules: [musicModule()],
			storage: { kind: "sqlite", directory },
		});
		const scrape = async () => (await fetch(`${server.address}/metrics`)).text();
		const sum = (text: string, name: string) => Number(linesOf(text, name)[0]);
		const before = await scrape();
		const names = Array.from({ length: 100 }, (_, index) => `a${index}`);
		await Promise.all(names.map((name) => server.client.write({ resource: artist(name) })));
		const after = await scrape();
		const grown = (name: string) => sum(after, name) - sum(before, name);
		expect(grown("plinth_commit_batch_size_sum")).toBe(100);
		const batches = grown("plinth_commit_batch_size_count");
		expect(batches).toBeGreaterThan(0);
		expect(batches).toBeLessThan(100);
		expect(grown("plinth_commit_batch_wait_seconds_count")).toBe(batches);
		expect(grown("plinth_commit_batch_write_seconds_sum")).toBeGreaterThan(0);
		expect(linesOf(after, "plinth_reference_cascades")).toEqual([" 0"]);
	});
});

describe("the metrics of deliveries to watches", () => {
	it("tell since when and how many watches wait for their turn", async () => {
		const lag = { waiting: 3, longestMs: 20, behindMs: 1_500 };
		const metrics = createMetrics();
		observeDeliveries(metrics.meter, () => lag);
		const text = await metrics.prometheus();
		await metrics.close();
		expect(linesOf(text, "plinth_watch_deliveries_waiting")).toEqual([" 3"]);
		expect(linesOf(text, "plinth_watch_delivery_wait_seconds")).toEqual([" 0.02"]);
		expect(linesOf(text, "plinth_watch_deliveries_behind_seconds_total")).toEqual([" 1.5"]);
	});

	it("show a server that delivers to more watches than one iteration of the event loop has room for", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const scrape = async () => (await fetch(`${server.address}/metrics`)).text();
		const behind = (text: string) =>
			Number(linesOf(text, "plinth_watch_deliveries_behind_seconds_total")[0]);
		const before = await scrape();
		expect(behind(before)).toBe(0);
		const end = new AbortController();
		const open = Promise.withResolvers<void>();
		let snapshots = 0;
		const watching = Array.from({ length: 100 }, async () => {
			const request = { type: typeOf(Artist.type), tenancy: {} };
			try {
				for await (const { event } of server.client.watchList(request, end)) {
					snapshots += event.case === "endOfSnapshot" ? 1 : 0;
					if (snapshots === watching.length) {
						open.resolve();
					}
				}
			} catch (failure) {
				expect(end.signal.aborted, String(failure)).toBe(true);
			}
		});
		await open.promise;
		// Watches that have not returned to wait for an event yet do not wait for a turn either.
		let text = before;
		for (let written = 0; behind(text) === 0; written += 1) {
			await server.client.write({ resource: artist(`a${written}`) });
			text = await scrape();
		}
		end.abort();
		await Promise.all(watching);
	});
});

describe("the metrics of references", () => {
	it("have a line per state, and two per deployment that was asked", async () => {
		const now: ReferenceMetrics = {
			sources: { confirmed: 7, tentative: 1 },
			waiting: {
				pending: { count: 2, oldestMs: 1_500 },
				checking: { count: 0, oldestMs: 0 },
				deleting: { count: 3, oldestMs: 60_000 },
			},
			cascades: 3,
			holderQueries: [{ service: "iam", region: "eu", sent: 10, failed: 4 }],
		};
		const metrics = createMetrics();
		const state = {
			reached: ["schema-begun", "discovered"] as const,
			problems: new Map(),
			registryOutdatedSince: new Date(90_000),
		};
		observeReferences(metrics.meter, { now: () => 120_000 }, { metrics: () => now, state });
		const text = await metrics.prometheus();
		await metrics.close();
		expect(linesOf(text, "plinth_reference_sources")).toEqual([
			'{state="confirmed"} 7',
			'{state="tentative"} 1',
		]);
		expect(linesOf(text, "plinth_reference_waiting")).toEqual([
			'{state="pending"} 2',
			'{state="checking"} 0',
			'{state="deleting"} 3',
		]);
		expect(linesOf(text, "plinth_reference_waiting_oldest_seconds")).toEqual([
			'{state="pending"} 1.5',
			'{state="checking"} 0',
			'{state="deleting"} 60',
		]);
		expect(linesOf(text, "plinth_reference_cascades")).toEqual([" 3"]);
		expect(linesOf(text, "plinth_reference_phase")).toEqual([
			'{phase="schema-begun"} 1',
			'{phase="discovered"} 1',
		]);
		expect(linesOf(text, "plinth_reference_registry_outdated_seconds")).toEqual([" 30"]);
		expect(linesOf(text, "plinth_reference_questions_total")).toEqual([
			'{service="iam",region="eu",result="answered"} 6',
			'{service="iam",region="eu",result="failed"} 4',
		]);
	});
});
