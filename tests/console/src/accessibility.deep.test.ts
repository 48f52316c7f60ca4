/** What axe finds where people write, in both themes: the editor, the review, the dialogs. */
import { describeWith } from "@plinth/test-support";
import { afterAll, expect, it } from "vitest";
import { axeViolations, closeBrowser, openPage } from "./browser.fixture.ts";
import { declareService, declareWorkload } from "./catalog-server.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

const place = "partition=default&namespace=default";

describeWith("chromium")("what people write and press", () => {
	it.each(["light", "dark"] as const)(
		"is accessible, in %s",
		{ timeout: 600_000 },
		async (colorScheme) => {
			const { server, url } = await startCatalog();
			await declareService(server);
			await declareWorkload(server, "web-1", "10.0.0.1");
			const { page, problems } = await openPage(
				`${url}#/types/catalog.v1.Workload/web-1/edit?${place}`,
				{ colorScheme },
			);
			const found: [where: string, violations: readonly string[]][] = [];
			const check = async (where: string) => {
				const violations = await axeViolations(page);
				if (violations.length > 0) {
					found.push([where, violations]);
				}
			};
			await page.getByText("host: 10.0.0.1").waitFor();
			await check("the editor");
			// The text as a person changes it.
			await page.locator(".editor .cm-content").first().focus();
			await page.keyboard.press("Control+End");
			await page.keyboard.insertText("\n  hosts: 1");
			await page.getByRole("list", { name: "Problems" }).waitFor();
			await check("the editor with a problem");
			await page.keyboard.press("Control+Space");
			await page.keyboard.press("Control+a");
			await page.keyboard.press("Delete");
			await page.keyboard.insertText(
				"type: catalog.v1.Workload\nname: web-1\npartition: default\nnamespace: default\ndata:\n  host: 10.0.0.2\n  ",
			);
			await page.keyboard.press("Control+Space");
			await page.locator(".cm-tooltip-autocomplete li").first().waitFor();
			await check("completions");
			await page.locator(".cm-tooltip-autocomplete li").first().click();
			await page.keyboard.press("Control+a");
			await page.keyboard.press("Delete");
			await page.keyboard.insertText(
				"type: catalog.v1.Workload\nname: web-1\npartition: default\nnamespace: default\ndata:\n  host: 10.0.0.2\n  ports:\n    http: 80\n",
			);
			await page.keyboard.press("Control+Enter");
			await page.locator(".cm-changedLine").first().waitFor();
			await check("the review");
			await page.goto(`${url}#/create/catalog.v1.Workload`);
			await page.getByRole("button", { name: "Create" }).waitFor();
			await page.getByText("name: ").first().waitFor();
			await check("create");
			await page.goto(`${url}#/types/catalog.v1.Workload/web-1?${place}`);
			await page.getByRole("button", { name: "Delete…" }).click();
			const dialog = page.getByRole("dialog", { name: "Delete" });
			await dialog.getByText("The deletion would be accepted").waitFor();
			await check("the deletion");
			await page.keyboard.press("Escape");
			await page.keyboard.press("Control+k");
			await page.getByRole("dialog", { name: "Go to" }).waitFor();
			await check("the palette");
			await page.keyboard.type("workload web");
			await page.getByRole("option", { name: "web-1" }).waitFor();
			await check("the palette with resources");
			await page.keyboard.type("nothing like this");
			await page.getByText("Nothing matches.").waitFor();
			await check("the palette without a match");
			expect(found).toEqual([]);
			expect(problems).toEqual([]);
		},
	);
});
