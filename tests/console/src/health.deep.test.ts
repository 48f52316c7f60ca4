/** What the console shows of the health of a server, in Chromium: without a reload, and where it leads. */
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import { createCatalogModule, networkProber, Workload } from "@plinth/example-catalog";
import { idOf } from "@plinth/resource";
import { createServer } from "@plinth/server";
import { describeWith } from "@plinth/test-support";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { axeViolations, closeBrowser, openPage } from "./browser.fixture.ts";
import { declareWorkload } from "./catalog-server.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

describeWith("chromium")("a server that the catalog watches", () => {
	it("is red soon after it was killed, in the overview and in the table that this leads to", async () => {
		const target = createHttpServer((_, response) => response.end("ok"));
		target.listen(0, "127.0.0.1");
		await once(target, "listening");
		const bound = target.address();
		const port = typeof bound === "object" ? (bound?.port ?? 0) : 0;
		const server = createServer({
			storage: { kind: "memory" },
			listen: { host: "127.0.0.1", port: 0 },
			modules: [createCatalogModule(networkProber)],
		});
		await server.start();
		onTestFinished(() => server.stop());
		await declareWorkload(server, "web-1", "127.0.0.1", port);
		const { page, problems } = await openPage(`${server.address}/console/`);
		await page.getByText("Nothing needs attention.").waitFor();
		const loaded = await page.evaluate(() => performance.timeOrigin);
		target.closeAllConnections();
		target.close();
		await page.getByText("Needs attention: 1 resource with a false condition").waitFor();
		await page
			.getByRole("row", { name: /catalog.v1.HealthCheck/ })
			.getByRole("link", { name: "1", exact: true })
			.click();
		const row = page.locator('[data-name="web-1"]');
		await row.locator(".status.bad", { hasText: "Healthy=False" }).waitFor();
		await page.goBack();
		await page.getByRole("link", { name: "1 resource with a false condition" }).click();
		await row.locator(".status.bad", { hasText: "Healthy=False" }).waitFor();
		await declareWorkload(server, "web-2", "127.0.0.1", Number(new URL(server.address).port));
		await page.getByText("1 of 2 resources").waitFor();
		await page.getByRole("button", { name: "Only false conditions", pressed: true }).click();
		await page.locator('[data-name="web-2"]').waitFor();
		await page.getByRole("button", { name: "Only false conditions", pressed: false }).click();
		await page.getByText("1 of 2 resources").waitFor();
		expect(await page.evaluate(() => performance.timeOrigin)).toBe(loaded);
		expect(problems).toEqual([]);
	});
});

describeWith("chromium")("a deletion that waits", () => {
	it("needs attention, and the overview leads to what is being deleted", async () => {
		const { server, url, healthy } = await startCatalog();
		healthy.add("10.0.0.1").add("10.0.0.2");
		await declareWorkload(server, "web-1", "10.0.0.1");
		await declareWorkload(server, "stuck", "10.0.0.2");
		const id = idOf(Workload, "stuck");
		const { page, problems } = await openPage(url);
		await page.getByText("Nothing needs attention.").waitFor();
		const { resource } = await server.client.read({ id });
		if (resource === undefined) {
			throw new Error("the workload was not declared");
		}
		resource.metadata.finalizers = "backup.example/copied";
		await server.client.write({ resource });
		await server.client.delete({ id });
		await page.getByText("Needs attention: 1 deletion waiting").waitFor();
		await page.getByRole("columnheader", { name: "Deleting" }).waitFor();
		expect(await axeViolations(page)).toEqual([]);
		await page.getByRole("link", { name: "1 deletion waiting" }).click();
		await page.locator('.deleting[data-name="stuck"]').waitFor();
		expect(await page.locator('[data-name="web-1"]').count()).toBe(0);
		expect(problems).toEqual([]);
	});
});

describeWith("chromium")("a controller whose reconciles fail", () => {
	it("is red in the overview, with its keys and their last errors, until they succeed", async () => {
		const { server, url, healthy, broken } = await startCatalog();
		healthy.add("10.0.0.1");
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page } = await openPage(url);
		await page.getByText("Nothing needs attention.").waitFor();
		broken.add("10.0.0.1");
		await page.getByText("Needs attention: 1 controller").waitFor();
		const failing = page.getByRole("region", { name: "Failing" });
		await failing.getByText("can't probe 10.0.0.1: <img src=x onerror=alert(1)>").waitFor();
		expect(await page.locator("img").count()).toBe(0);
		await failing.getByRole("link", { name: "HealthCheck default/default/web-1" }).waitFor();
		expect(await axeViolations(page)).toEqual([]);
		await failing.getByRole("link", { name: "catalog-prober" }).click();
		await page.getByRole("heading", { name: "catalog-prober" }).waitFor();
		await page.getByText("can't probe 10.0.0.1").waitFor();
		await page.getByRole("img", { name: /^Reconciles by duration: .*\d+ (below|from)/ }).waitFor();
		broken.clear();
		await page.locator(".facts > div", { hasText: "Failing" }).getByText("None").waitFor();
		await page.getByRole("link", { name: "Overview" }).click();
		await page.getByText("Nothing needs attention.").waitFor();
	});
});
