/** Comments of protos in the console, in Chromium. */
import { createServer } from "@plinth/server";
import { defineModule } from "@plinth/server/module";
import { describeWith } from "@plinth/test-support";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { axeViolations, closeBrowser, openPage } from "./browser.fixture.ts";
import { declareWorkload } from "./catalog-server.ts";
import { declareNote, noteType } from "./commented-type.fixture.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

const place = "partition=default&namespace=default";

describeWith("chromium")("comments of fields", () => {
	it.each(["light", "dark"] as const)(
		"stand in the data, unless they are hidden, in %s",
		async (colorScheme) => {
			const { server, url } = await startCatalog();
			await declareWorkload(server, "web-1", "10.0.0.1");
			const { page, problems } = await openPage(
				`${url}#/types/catalog.v1.Workload/web-1?${place}`,
				{ colorScheme },
			);
			const data = page.getByRole("region", { name: "Data" });
			const host = data.getByText("A host name or an address.");
			await host.waitFor();
			await data.getByText("Workload is one running program on a host.").waitFor();
			await data.getByText("Port numbers by name.").waitFor();
			expect(await axeViolations(page)).toEqual([]);
			await data.getByRole("button", { name: "Hide comments" }).press("Enter");
			await host.waitFor({ state: "detached" });
			await page.reload();
			await data.getByText("10.0.0.1").waitFor();
			expect(await host.count()).toBe(0);
			await data.getByRole("button", { name: "Show comments" }).click();
			await host.waitFor();
			expect(problems).toEqual([]);
		},
	);

	it("are beside completions, and at names below the pointer", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page, problems } = await openPage(
			`${url}#/types/catalog.v1.Workload/web-1/edit?${place}`,
		);
		const name = page.locator(".cm-line", { hasText: "host:" }).getByText("host");
		const comment = page.locator(".cm-tooltip", { hasText: "A host name or an address." });
		// A pointer that arrives while the editor still loads the type shows nothing until it moves again.
		const isShown = async () => {
			await page.mouse.move(0, 0);
			await name.hover();
			return comment.waitFor({ timeout: 5_000 }).then(
				() => true,
				() => false,
			);
		};
		await expect.poll(isShown).toBe(true);
		await page.locator(".editor .cm-content").first().focus();
		await page.keyboard.press("Control+a");
		await page.keyboard.press("Delete");
		await page.keyboard.insertText("type: catalog.v1.Workload\nname: web-1\ndata:\n  po");
		await page.keyboard.press("Control+Space");
		const info = page.locator(".cm-completionInfo", { hasText: "Port numbers by name." });
		// Within reach of the pointer: it is not cut off by the list that contains it.
		await info.click({ trial: true });
		expect(problems).toEqual([]);
	});

	it("are not missed where the server has none", async () => {
		const type = noteType(undefined);
		const server = createServer({
			storage: { kind: "memory" },
			listen: { host: "127.0.0.1", port: 0 },
			modules: [defineModule({ name: "notes", types: [type] })],
		});
		await server.start();
		onTestFinished(() => server.stop());
		await declareNote(server, type, "one");
		const { page, problems } = await openPage(
			`${server.address}/console/#/types/commented.v1.Note/one?${place}`,
		);
		const data = page.getByRole("region", { name: "Data" });
		await data.getByText("written").waitFor();
		expect(await data.locator(".comment, button").count()).toBe(0);
		expect(problems).toEqual([]);
	});
});
