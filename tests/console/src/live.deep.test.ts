/** What the console receives by itself, in Chromium: over one stream for all tabs, and across restarts of the server. */
import { Workload } from "@plinth/example-catalog";
import { idOf } from "@plinth/resource";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import type { Page } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import { closeBrowser, openPage, setVisible } from "./browser.fixture.ts";
import { declareWorkload, startCatalogServer } from "./catalog-server.ts";
import { startPrefixProxy } from "./prefix-proxy.fixture.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

const workloads = "#/types/catalog.v1.Workload";

/** The names of the rows, in order. */
function rowNames(page: Page): Promise<readonly (string | null)[]> {
	return page
		.locator("[data-name]")
		.evaluateAll((rows) =>
			rows
				.toSorted((a, b) => Number(a.ariaRowIndex) - Number(b.ariaRowIndex))
				.map((row) => row.getAttribute("data-name")),
		);
}

describeWith("chromium")("live pages", () => {
	it("of eight tabs share one stream of watches and one of overviews, over HTTP/1.1", async () => {
		const { server } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const proxy = await startPrefixProxy(server.address, "");
		const url = `${proxy.url}/console/`;
		const { page: first, problems } = await openPage(`${url}${workloads}`);
		const tabs = [first];
		for (const path of [
			"#/",
			workloads,
			`${workloads}/web-1?partition=default&namespace=default`,
		]) {
			const page = await first.context().newPage();
			await page.goto(`${url}${path}`);
			tabs.push(page);
		}
		// More than the six connections that a browser opens to a server.
		for (let more = 0; more < 4; more += 1) {
			const page = await first.context().newPage();
			await page.goto(`${url}#/types/catalog.v1.HealthCheck`);
			tabs.push(page);
		}
		for (const tab of tabs) {
			await tab.locator('[data-phase="live"]').waitFor();
		}
		await expect
			.poll(() => proxy.open.toSorted())
			.toEqual([
				"/plinth.resource.v1.ResourceService/WatchSet",
				"/plinth.server.v1.ServerService/WatchOverview",
			]);
		await declareWorkload(server, "web-2", "10.0.0.2");
		for (const tab of [tabs[0], tabs[2], tabs[4], tabs[7]]) {
			await tab?.locator('[data-name="web-2"]').waitFor();
		}
		await Promise.all(tabs.map((tab) => setVisible(tab, false)));
		await expect.poll(() => proxy.open).toEqual([]);
		await declareWorkload(server, "web-3", "10.0.0.3");
		await setVisible(first, true);
		await expect.poll(() => rowNames(first)).toEqual(["web-1", "web-2", "web-3"]);
		expect(await tabs[2]?.locator('[data-phase="paused"]').count()).toBe(1);
		await Promise.all(tabs.map((tab) => tab.close()));
		await expect.poll(() => proxy.open).toEqual([]);
		expect(problems).toEqual([]);
	});

	it("go on when the server was restarted, without losing or doubling a row", async () => {
		const storage = { kind: "sqlite", directory: await temporaryFolder() } as const;
		const first = await startCatalogServer({ storage });
		const port = Number(new URL(first.server.address).port);
		for (const name of ["a", "b", "c"]) {
			await declareWorkload(first.server, name, "10.0.0.1");
		}
		const { page } = await openPage(`${first.url}${workloads}`);
		await expect.poll(() => rowNames(page)).toEqual(["a", "b", "c"]);
		await first.server.client.delete({ id: idOf(Workload, "b") });
		await expect.poll(() => rowNames(page)).toEqual(["a", "c"]);
		await first.server.stop();
		await page.getByText(/^connection lost, as of \d+s ago$/).waitFor();
		expect(await rowNames(page)).toEqual(["a", "c"]);
		const loaded = await page.evaluate(() => performance.timeOrigin);
		const second = await startCatalog({ storage, listen: { host: "127.0.0.1", port } });
		await second.server.client.delete({ id: idOf(Workload, "c") });
		await declareWorkload(second.server, "d", "10.0.0.1");
		await expect.poll(() => rowNames(page)).toEqual(["a", "d"]);
		await page.locator('[data-phase="live"]').waitFor();
		await declareWorkload(second.server, "b", "10.0.0.1");
		await expect.poll(() => rowNames(page)).toEqual(["a", "b", "d"]);
		expect(await page.evaluate(() => performance.timeOrigin)).toBe(loaded);
	});

	it("show what a server that stores in memory has after its restart", async () => {
		const first = await startCatalogServer();
		const port = Number(new URL(first.server.address).port);
		for (const name of ["a", "b", "c"]) {
			await declareWorkload(first.server, name, "10.0.0.1");
		}
		const { page } = await openPage(`${first.url}${workloads}`);
		await expect.poll(() => rowNames(page)).toEqual(["a", "b", "c"]);
		await first.server.stop();
		await page.locator('[data-phase="lost"]').waitFor();
		const second = await startCatalog({ listen: { host: "127.0.0.1", port } });
		await declareWorkload(second.server, "d", "10.0.0.1");
		await expect.poll(() => rowNames(page)).toEqual(["d"]);
		await page.locator('[data-phase="live"]').waitFor();
	});

	it("try again when the network returns", async () => {
		const { server } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const proxy = await startPrefixProxy(server.address, "");
		const { page } = await openPage(`${proxy.url}/console/${workloads}`);
		await page.locator('[data-phase="live"]').waitFor();
		proxy.refuse(true);
		await page.locator('[data-phase="lost"]').waitFor();
		// By then, attempts are far apart. That the next one follows at once is tested with a clock, in watch-client.
		await expect.poll(() => proxy.refused).toBeGreaterThanOrEqual(5);
		proxy.refuse(false);
		await page.evaluate(() => dispatchEvent(new Event("online")));
		await page.locator('[data-phase="live"]').waitFor();
	});

	it("have a worker of their own in browsers without shared ones", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page, problems } = await openPage("about:blank");
		await page.addInitScript(() => Reflect.deleteProperty(globalThis, "SharedWorker"));
		await page.goto(`${url}${workloads}`);
		await page.locator('[data-name="web-1"]').waitFor();
		expect(page.workers()).toHaveLength(1);
		expect(problems.filter((each) => !each.startsWith("request to another origin"))).toEqual([]);
	});
});
