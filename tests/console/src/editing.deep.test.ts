/** Creating, editing and deleting resources in the console, in Chromium. */
import { Service, Workload, WorkloadSchema } from "@plinth/example-catalog";
import { decode, encodeData, idOf, typeOf } from "@plinth/resource";
import type { Server } from "@plinth/server";
import { describeWith } from "@plinth/test-support";
import type { Page } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import { axeViolations, closeBrowser, openPage } from "./browser.fixture.ts";
import { declareService, declareWorkload } from "./catalog-server.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

const place = "partition=default&namespace=default";

/** Replaces the text of the editor. */
async function write(page: Page, text: string): Promise<void> {
	await page.locator(".editor .cm-content").first().focus();
	// The editor deletes by itself. If the browser replaces a selection, it tries to keep its look with styles, in vain.
	await page.keyboard.press("Control+a");
	await page.keyboard.press("Delete");
	await page.keyboard.insertText(text);
}

function workload(host: string, port = 80, metadata = ""): string {
	return `type: catalog.v1.Workload\nname: web-1\npartition: default\nnamespace: default\n${metadata}data:\n  host: ${host}\n  ports:\n    http: ${port}\n`;
}

async function hostOf({ client }: Server, name: string): Promise<string> {
	const { resource } = await client.read({ id: idOf(Workload, name) });
	return resource === undefined ? "" : decode(Workload, resource).data.host;
}

describeWith("chromium")("the editor", () => {
	it("shows what changes before anything is stored, and stores it", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page, problems } = await openPage(`${url}#/types/catalog.v1.Workload/web-1?${place}`);
		await page.getByRole("link", { name: "Edit", exact: true }).click();
		await page.getByText("host: 10.0.0.1").waitFor();
		await write(page, workload("10.9.9.9"));
		await page.getByRole("button", { name: "Review" }).click();
		const review = page.getByRole("region", { name: "Review" });
		await review.locator(".cm-deletedChunk", { hasText: "host: 10.0.0.1" }).waitFor();
		await review.locator(".cm-changedLine", { hasText: "host: 10.9.9.9" }).waitFor();
		expect(await hostOf(server, "web-1")).toBe("10.0.0.1");
		expect(await axeViolations(page)).toEqual([]);
		await page.getByRole("button", { name: "Apply" }).click();
		await page.getByRole("heading", { name: "web-1" }).waitFor();
		expect(await hostOf(server, "web-1")).toBe("10.9.9.9");
		expect(problems).toEqual([]);
	});

	it("names problems with their lines, and completes fields of the type", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page } = await openPage(`${url}#/types/catalog.v1.Workload/web-1/edit?${place}`);
		await page.getByText("host: 10.0.0.1").waitFor();
		await write(page, workload("10.0.0.1").replace("host:", "hots:"));
		const problems = page.getByRole("list", { name: "Problems" });
		await problems.getByText("line 6: data.hots Workload has no such field").waitFor();
		expect(await page.getByRole("button", { name: "Review" }).isDisabled()).toBe(true);
		await write(page, workload("10.0.0.1").replace("web-1", "web-2"));
		await problems.getByText("a resource can't be renamed or moved").waitFor();
		await write(page, "type: catalog.v1.Workload\nname: web-1\ndata:\n  ho");
		await page.keyboard.press("Control+End");
		await page.keyboard.press("Control+Space");
		await page.locator(".cm-tooltip-autocomplete li", { hasText: "host" }).click();
		await page.locator(".cm-line", { hasText: "host:" }).waitFor();
	});

	it("says what the server refuses", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page } = await openPage(`${url}#/types/catalog.v1.Workload/web-1/edit?${place}`);
		await page.getByText("host: 10.0.0.1").waitFor();
		await write(page, workload("10.0.0.1", 99_999));
		await page.getByRole("button", { name: "Review" }).click();
		await page.getByRole("alert").getByText("Can't change the resource").waitFor();
		expect(await page.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
	});

	it("merges what somebody else has changed meanwhile, and asks about a field that both have changed", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page } = await openPage(`${url}#/types/catalog.v1.Workload/web-1/edit?${place}`);
		await page.getByText("host: 10.0.0.1").waitFor();
		await write(page, workload("mine.example", 80, "metadata:\n  team: mine\n"));
		await page.getByRole("button", { name: "Review" }).click();
		await page.locator(".cm-changedLine", { hasText: "mine.example" }).waitFor();
		const { resource } = await server.client.read({ id: idOf(Workload, "web-1") });
		if (resource === undefined) {
			throw new Error("there is no web-1");
		}
		const theirs = decode(Workload, resource).data;
		theirs.host = "theirs.example";
		theirs.ports.admin = 8_080;
		resource.data = encodeData(WorkloadSchema, theirs);
		await server.client.write({ resource });
		await page.getByRole("button", { name: "Apply" }).click();
		const conflicts = page.getByRole("list", { name: "Conflicts" });
		await conflicts.getByText("data.host").waitFor();
		expect(await conflicts.getByRole("listitem").count()).toBe(1);
		await conflicts.getByRole("button", { name: 'Theirs: "theirs.example"' }).click();
		await page.getByRole("button", { name: "Review" }).click();
		await page.locator(".cm-changedLine", { hasText: "team: mine" }).waitFor();
		await page.getByRole("button", { name: "Apply" }).click();
		await page.getByRole("heading", { name: "web-1" }).waitFor();
		const { resource: stored } = await server.client.read({ id: idOf(Workload, "web-1") });
		expect(stored?.metadata.team).toBe("mine");
		expect(stored && decode(Workload, stored).data).toMatchObject({
			host: "theirs.example",
			ports: { http: 80, admin: 8_080 },
		});
	});

	it("creates a resource", async () => {
		const { server, url } = await startCatalog();
		const { page, problems } = await openPage(`${url}#/types/catalog.v1.Workload`);
		await page.getByRole("link", { name: "Create" }).click();
		await page.locator(".cm-content").waitFor();
		await write(page, workload("10.0.0.7"));
		await page.keyboard.press("Control+Enter");
		await page.getByText("Valid: the server accepts it.").waitFor();
		await page.getByRole("button", { name: "Create" }).click();
		await page.getByRole("heading", { name: "web-1" }).waitFor();
		expect(await hostOf(server, "web-1")).toBe("10.0.0.7");
		expect(problems).toEqual([]);
	});
});

describeWith("chromium")("a deletion", () => {
	it("is foretold before the button is pressed, and then done", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page } = await openPage(`${url}#/types/catalog.v1.Workload/web-1?${place}`);
		await page.getByRole("button", { name: "Delete…" }).click();
		const dialog = page.getByRole("dialog", { name: "Delete" });
		await dialog.getByText("The deletion would be accepted: 1 more deleted with it").waitFor();
		await dialog
			.getByRole("row", { name: /HealthCheck default\/default\/web-1 deleted/ })
			.waitFor();
		expect(await axeViolations(page)).toEqual([]);
		await dialog.getByRole("button", { name: "Delete", exact: true }).click();
		await page.getByText("deleted", { exact: true }).first().waitFor();
		await expect
			.poll(async () => {
				const tenancy = { partition: "*", namespace: "*" };
				const left = await server.client.list({ type: typeOf(Workload.type), tenancy });
				return left.resources.length;
			})
			.toBe(0);
	});

	it("that is stuck is explained by two clicks", async () => {
		const { server, url } = await startCatalog();
		await declareService(server);
		const { resource } = await server.client.read({ id: idOf(Service, "web") });
		if (resource?.id === undefined) {
			throw new Error("there is no service");
		}
		resource.metadata.finalizers = "dns.example/records";
		await server.client.write({ resource });
		await server.client.delete({ id: resource.id });
		const { page } = await openPage(url);
		await page.getByRole("navigation").getByRole("link", { name: "Service", exact: true }).click();
		await page.getByRole("link", { name: "web", exact: true }).click();
		const waits = page.getByRole("region", { name: "Deletion" });
		await waits.getByText("dns.example/records").waitFor();
		expect(await waits.textContent()).toContain("It waits for:");
	});
});
