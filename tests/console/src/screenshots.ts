/**
 * Takes screenshots of the pages of the console, in both themes and as a phone shows them, with the content of the catalog and of
 * the racks.
 *
 *     node tests/console/src/screenshots.ts <folder> [<page>-<theme> …]
 *
 * A theme is `light`, `dark`, or `phone`: the light one, on a phone.
 */
import { join } from "node:path";
import { Workload } from "@plinth/example-catalog";
import { decode, encodeData, idOf } from "@plinth/resource";
import { chromium, type Page } from "playwright-core";
import { declareService, declareWorkload, startCatalogServer } from "./catalog-server.ts";
import { declareRack, deleteStuckRack, startRacksServer } from "./racks-server.ts";

const [folder = "screenshots", ...chosen] = process.argv.slice(2);

const pages = [
	["overview", "#/"],
	["types", "#/types"],
	["table", "#/types/catalog.v1.HealthCheck"],
	["resource", "#/types/catalog.v1.HealthCheck/web-03?partition=default&namespace=default"],
	["deleting", "#/types/catalog.v1.Workload/stuck?partition=default&namespace=default"],
	["edit", "#/types/catalog.v1.Workload/web-04/edit?partition=default&namespace=default"],
	["graph", "#/types/devices.v1.Rack/rack-1/graph?partition=default&namespace=default"],
	["create", "#/create/catalog.v1.Workload"],
	["flow", "#/flow"],
	["controllers", "#/controllers"],
	["controller", "#/controllers/catalog-prober"],
] as const;

const { server, url, healthy } = await startCatalogServer();
const racks = await startRacksServer();
const onEnd: (() => void)[] = [];
const browser = await chromium.launch({
	executablePath: "/usr/bin/chromium",
	args: ["--no-sandbox"],
});
try {
	await declareService(server);
	for (let at = 1; at <= 40; at += 1) {
		const name = `${at <= 25 ? "web" : "db"}-${String(at).padStart(2, "0")}`;
		const host = `10.0.${at % 4}.${at}`;
		if (at % 9 !== 3) {
			healthy.add(host);
		}
		await declareWorkload(server, name, host);
	}
	await declareStuck();
	await declareRack(racks.server, "rack-1", ["device-1", "device-2", "device-3"]);
	await deleteStuckRack(racks.server, "rack-1", "device-2");
	// Something happens while the overview is watched.
	let changes = 0;
	const timer = setInterval(() => {
		changes += 1;
		if (Math.sin(changes / 12) > -0.3) {
			void changePort(changes);
		}
	}, 150);
	onEnd.push(() => clearInterval(timer));
	for (const theme of ["light", "dark", "phone"] as const) {
		const context = await browser.newContext({
			colorScheme: theme === "dark" ? "dark" : "light",
			...(theme === "phone"
				? { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }
				: { viewport: { width: 1280, height: 720 } }),
		});
		const page = await context.newPage();
		for (const [name, path] of pages.filter(([each]) => isChosen(`${each}-${theme}`))) {
			await page.goto(`${name === "graph" ? racks.url : url}${path}`);
			if (name === "edit") {
				await writeChange(page);
			}
			await page.waitForTimeout(name === "overview" ? 20_000 : 2_500);
			await page.screenshot({ path: join(folder, `${name}-${theme}.png`) });
		}
		if (isChosen(`palette-${theme}`)) {
			await page.keyboard.press("Control+k");
			await page.keyboard.type("healthcheck web-1");
			await page.waitForTimeout(1_000);
			await page.screenshot({ path: join(folder, `palette-${theme}.png`) });
		}
		await context.close();
	}
} finally {
	for (const end of onEnd) {
		end();
	}
	await browser.close();
	await server.stop();
	await racks.server.stop();
}

function isChosen(name: string): boolean {
	return chosen.length === 0 || chosen.includes(name);
}

/** Changes the port in the editor, and reviews that. */
async function writeChange(page: Page): Promise<void> {
	await page.getByText("http: 80").dblclick({ position: { x: 50, y: 8 } });
	await page.keyboard.press("End");
	await page.keyboard.type("80");
	await page.keyboard.press("Control+Enter");
}

/** A workload that is being deleted, and waits for a finalizer that nothing removes. */
async function declareStuck(): Promise<void> {
	await declareWorkload(server, "stuck", "10.0.0.99");
	const { client } = server;
	const { resource } = await client.read({ id: idOf(Workload, "stuck") });
	if (resource !== undefined) {
		resource.metadata.finalizers = "backup.example/copied";
		await client.write({ resource });
		await client.delete({ id: idOf(Workload, "stuck") });
	}
}

/** Changes the port of one of the databases. */
async function changePort(change: number): Promise<void> {
	const id = idOf(Workload, `db-${26 + (change % 15)}`);
	const { resource } = await server.client.read({ id });
	if (resource !== undefined) {
		const { data } = decode(Workload, resource);
		data.ports.http = 5_000 + (change % 100);
		await server.client.write({
			resource: { ...resource, data: encodeData(Workload.schema, data) },
		});
	}
}
