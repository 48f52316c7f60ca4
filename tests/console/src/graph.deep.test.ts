/** The graph around a resource in the console, in Chromium. */
import { describeWith } from "@plinth/test-support";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { axeViolations, closeBrowser, openPage } from "./browser.fixture.ts";
import {
	declareRack,
	deleteStuckRack,
	type RacksServer,
	startRacksServer,
} from "./racks-server.ts";

afterAll(closeBrowser);

const place = "partition=default&namespace=default";

async function startRacks(): Promise<RacksServer> {
	const started = await startRacksServer();
	onTestFinished(() => started.server.stop());
	return started;
}

describeWith("chromium")("the graph", () => {
	it.each(["light", "dark"] as const)(
		"tells references from ownership, expands, and is accessible, in %s",
		async (colorScheme) => {
			const { server, url } = await startRacks();
			await declareRack(server, "rack-1", ["device-1", "device-2"]);
			const { page, problems } = await openPage(
				`${url}#/types/devices.v1.Rack/rack-1/graph?${place}`,
				{ colorScheme },
			);
			const node = (name: string) => page.locator(`[data-node="${name}"]`);
			// They are drawn once the sizes of their nodes are known.
			const edges = (kind: string) => page.locator(`.react-flow__edge.edge-${kind}`).count();
			await node("device-2").waitFor();
			await node("rack-1-project").waitFor();
			await expect.poll(() => edges("block")).toBe(1);
			await expect.poll(() => edges("cascade")).toBe(2);
			expect(await node("guests").count()).toBe(0);
			await page.getByRole("button", { name: "Expand Device device-1" }).click();
			await node("guests").waitFor();
			await expect.poll(() => edges("unset")).toBe(1);
			expect(await axeViolations(page)).toEqual([]);
			await page.getByRole("button", { name: "Fold Device device-1" }).click();
			await node("guests").waitFor({ state: "detached" });
			// What is declared meanwhile appears.
			await declareRack(server, "rack-1", ["device-3"]);
			await node("device-3").waitFor();
			await node("device-3")
				.getByRole("button", { name: /^Device/ })
				.click();
			await page.getByRole("heading", { name: "device-3" }).waitFor();
			expect(problems).toEqual([]);
		},
	);

	it("draws the way from a deletion that waits to what it waits for in red", async () => {
		const { server, url } = await startRacks();
		await declareRack(server, "rack-1", ["device-1", "device-2"]);
		await deleteStuckRack(server, "rack-1", "device-1");
		const { page } = await openPage(`${url}#/types/devices.v1.Rack/rack-1?${place}`);
		await page.getByText("It waits for:").waitFor();
		await page.getByRole("link", { name: "Graph" }).click();
		await page.locator('.graph-node.stuck[data-node="device-1"]').waitFor();
		await page.locator('.graph-node.stuck[data-node="rack-1"]').waitFor();
		await page.locator(".react-flow__edge.stuck").waitFor();
		await page.getByText("The deletion waits along the red path.").waitFor();
		// The last node says why, and the legend what red means.
		const last = page.locator('[data-node="device-1"]');
		await last.getByText("waits for finalizer backup.example/copied").waitFor();
		await page.locator('[data-node="rack-1"]').getByText("being deleted").waitFor();
		await page.getByText("a deletion waits along it").waitFor();
		expect(await axeViolations(page)).toEqual([]);
	});

	it("draws many resources of a kind as one, and never too many elements", async () => {
		const { server, url } = await startRacks();
		const devices = Array.from({ length: 400 }, (_, at) => `device-${at}`);
		await declareRack(server, "rack-1", devices);
		const { page } = await openPage(`${url}#/types/devices.v1.Rack/rack-1/graph?${place}`);
		await page.getByRole("button", { name: "Device 400 resources" }).click();
		await page.getByText("There are more than can be drawn").waitFor();
		expect(await page.locator(".react-flow__node").count()).toBeLessThanOrEqual(300);
	});
});
