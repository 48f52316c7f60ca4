/** Pages of the console as a phone shows them, in Chromium. */
import { describeWith } from "@plinth/test-support";
import { afterAll, expect, it } from "vitest";
import { axeViolations, closeBrowser, openPage } from "./browser.fixture.ts";
import { declareWorkload } from "./catalog-server.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

describeWith("chromium")("a phone", () => {
	it("shows which controllers fail without scrolling, and has all types in a menu", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page, problems } = await openPage(`${url}#/controllers`);
		await page.setViewportSize({ width: 390, height: 844 });
		for (const name of ["Failing", "Failed/s"]) {
			const box = await page.getByRole("columnheader", { name, exact: true }).boundingBox();
			expect([name, (box?.x ?? 390) + (box?.width ?? 0) <= 390]).toEqual([name, true]);
		}
		const navigation = page.getByRole("navigation");
		const link = navigation.getByRole("link", { name: "Workload", exact: true });
		expect(await link.isVisible()).toBe(false);
		await navigation.getByRole("button", { name: "All types" }).click();
		await navigation.getByRole("heading", { name: "catalog.v1" }).waitFor();
		expect(await axeViolations(page)).toEqual([]);
		await link.click();
		await page.locator('[data-name="web-1"]').waitFor();
		await link.waitFor({ state: "hidden" });
		await navigation.getByRole("button", { name: "Workload" }).waitFor();
		expect(problems).toEqual([]);
	});
});
