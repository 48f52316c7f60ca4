/** The graph of types and controllers in the console, in Chromium. */
import { describeWith } from "@plinth/test-support";
import { afterAll, expect, it } from "vitest";
import { axeViolations, closeBrowser, openPage } from "./browser.fixture.ts";
import { declareWorkload } from "./catalog-server.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

describeWith("chromium")("the graph of controllers", () => {
	it.each(["light", "dark"] as const)(
		"moves where something flows, unless that is unwanted, and leads to all pages, in %s",
		async (colorScheme) => {
			const { server, url, broken } = await startCatalog();
			await declareWorkload(server, "web-1", "10.0.0.1");
			const { page, problems } = await openPage(`${url}#/controllers`, { colorScheme });
			await page.getByRole("link", { name: "Graph" }).click();
			const node = (name: string) => page.locator(`[data-node="${name}"]`);
			await node("catalog-prober").waitFor();
			await node("catalog.v1.Workload").waitFor();
			await node("catalog.v1.HealthCheck")
				.getByText(/^1 false, /)
				.waitFor();
			const marked = page.getByRole("navigation").locator("a.active");
			expect(await marked.allTextContents()).toEqual(["Controllers"]);
			expect(await page.title()).toBe("Graph of controllers · Plinth");
			// The prober reconciles each second.
			const moving = page.locator(".react-flow__edge.animated.edge-manages path").first();
			await moving.waitFor({ state: "attached" });
			const animation = () => moving.evaluate((path) => getComputedStyle(path).animationName);
			expect(await animation()).not.toBe("none");
			await page.emulateMedia({ reducedMotion: "reduce" });
			expect(await animation()).toBe("none");
			expect(await axeViolations(page)).toEqual([]);
			broken.add("10.0.0.1");
			await page.locator('.graph-node.controller.bad[data-node="catalog-prober"]').waitFor();
			expect(await axeViolations(page)).toEqual([]);
			await node("catalog.v1.Workload").getByRole("button").click();
			await page.getByRole("heading", { name: "Workload" }).waitFor();
			await page.goBack();
			await node("catalog-prober").getByRole("button").click();
			await page.getByRole("heading", { name: "catalog-prober" }).waitFor();
			expect(problems).toEqual([]);
		},
	);
});
