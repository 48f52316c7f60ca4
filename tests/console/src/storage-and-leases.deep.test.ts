/** What the overview shows of commits and leases, in Chromium. */
import type { Server } from "@plinth/server";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import type { Page } from "playwright-core";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { axeViolations, closeBrowser, openPage } from "./browser.fixture.ts";
import { declareWorkload } from "./catalog-server.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

/**
 * Acquires leases as a process does that is no server, and renews them, until the returned function is called or the test is
 * over.
 */
function hold({ address }: Server, names: readonly string[], holder: string): () => void {
	const acquire = async (name: string) => {
		// The holder of a lease gets it again.
		const response = await fetch(`${address}/plinth.lease.v1.LeaseService/Acquire`, {
			method: "POST",
			headers: { "content-type": "application/json" },
			body: JSON.stringify({ name, holder }),
		});
		expect(await response.json()).toMatchObject({ fence: expect.stringContaining("/") });
	};
	const acquireAll = () => Promise.all(names.map(acquire)).catch(() => {});
	void acquireAll();
	const renewing = setInterval(acquireAll, 3_000);
	const stop = () => clearInterval(renewing);
	onTestFinished(stop);
	return stop;
}

/** The cells of each row of a card, without its heading. */
async function rowsOf(page: Page, card: string): Promise<readonly (readonly string[])[]> {
	const rows = await page.getByRole("region", { name: card }).locator("tbody tr").all();
	return Promise.all(rows.map((row) => row.getByRole("cell").allTextContents()));
}

describeWith("chromium")("the overview of the storage", () => {
	it("shows how long commits take, and how many share a write, on each server", async () => {
		const directory = await temporaryFolder();
		const { server, url } = await startCatalog({ storage: { kind: "sqlite", directory } });
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page, problems } = await openPage(url);
		const row = async () => (await rowsOf(page, "Storage"))[0] ?? [];
		await expect.poll(async () => (await row()).length, { timeout: 300_000 }).toBe(5);
		const [, , median, p99, perWrite] = await row();
		expect([median, p99].map((text) => /^[\d.]+ m?s$/.test(text ?? ""))).toEqual([true, true]);
		expect(Number(perWrite)).toBeGreaterThanOrEqual(1);
		expect(await axeViolations(page)).toEqual([]);
		expect(problems).toEqual([]);
	});
});

describeWith("chromium")("the overview of leases", () => {
	it("shows who holds each, leads to the controllers, and follows the leases", async () => {
		const { server, url } = await startCatalog();
		const { page, problems } = await openPage(url);
		const leases = page.getByRole("region", { name: "Leases" });
		await leases.getByText("singleton controllers").waitFor();
		await leases.getByText("shards 0–15").first().waitFor();
		const stopRenewing = hold(server, ["reports/nightly"], "01ABC");
		const lease = leases.getByRole("row", { name: "reports/nightly" });
		await lease.waitFor();
		expect((await lease.getByRole("cell").allTextContents()).slice(1, 3)).toEqual([
			...["client", "01ABC"],
		]);
		expect(await lease.textContent()).toMatch(/, for \d+s more$/);
		expect(await lease.getByRole("link").count()).toBe(0);
		stopRenewing();
		await lease.waitFor({ state: "detached" });
		await leases.getByRole("link", { name: "controllers", exact: true }).click();
		await page.getByRole("heading", { name: "Controllers", level: 1 }).waitFor();
		expect(problems).toEqual([]);
	});

	it("shows long and odd names as text, the first hundred, on a phone too", async () => {
		const { server, url } = await startCatalog();
		const odd = ["javascript:alert", "../../x", "l".repeat(200)];
		const many = Array.from({ length: 120 }, (_, at) => `z${at}`);
		hold(server, [...odd, ...many], "h".repeat(64));
		const { page, problems } = await openPage(url);
		await page.setViewportSize({ width: 390, height: 844 });
		const leases = page.getByRole("region", { name: "Leases" });
		for (const name of odd) {
			await leases.getByText(name, { exact: true }).waitFor();
		}
		await leases.getByText(/^and \d+ others$/).waitFor();
		expect(await rowsOf(page, "Leases")).toHaveLength(100);
		const width = await page.evaluate(() => document.documentElement.scrollWidth);
		expect(width).toBe(390);
		const card = await leases.boundingBox();
		expect((card?.x ?? 0) + (card?.width ?? 0)).toBeLessThanOrEqual(390);
		expect(problems).toEqual([]);
	});
});
