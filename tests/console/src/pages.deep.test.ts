/** The pages of the console in Chromium, against a server with the catalog. */
import { globSync, statSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { create } from "@bufbuild/protobuf";
import { consoleFolder } from "@plinth/console";
import { Workload, WorkloadSchema } from "@plinth/example-catalog";
import { NamespaceSchema } from "@plinth/proto/gen/plinth/tenancy/v1/tenancy_pb.js";
import { idOf, Namespace, resourceOf } from "@plinth/resource";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import { afterAll, expect, it } from "vitest";
import { axeViolations, closeBrowser, openPage } from "./browser.fixture.ts";
import { declareService, declareWorkload } from "./catalog-server.ts";
import { selfSignedCertificate } from "./certificate.fixture.ts";
import { startPrefixProxy } from "./prefix-proxy.fixture.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

const place = "partition=default&namespace=default";
const script = `<img src=x onerror=alert(1)><script>alert(2)</script>"'\${alert(3)}javascript:alert(4)`;

describeWith("chromium")("the table of a type", () => {
	it("shows the resources with the columns of the type, and each change", async () => {
		const { server, url, healthy } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page, problems } = await openPage(`${url}#/types/catalog.v1.HealthCheck`);
		const row = page.locator('[data-name="web-1"]');
		await row.getByText("Healthy=False (ConnectionRefused)").waitFor();
		expect(await row.textContent()).toContain("1000");
		// What follows arrives without a reload.
		healthy.add("10.0.0.1");
		await row.getByText("Healthy", { exact: true }).waitFor();
		expect(await row.getAttribute("data-changed")).not.toBe(null);
		await declareWorkload(server, "web-2", "10.0.0.2");
		await page.locator('[data-name="web-2"]').waitFor();
		await server.client.delete({ id: idOf(Workload, "web-2") });
		await page.locator('[data-name="web-2"]').waitFor({ state: "detached" });
		expect(problems).toEqual([]);
	});

	it("begins with the names and what is wrong on a phone", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page } = await openPage(`${url}#/types/catalog.v1.Workload`);
		const row = page.locator('[data-name="web-1"]');
		await row.waitFor();
		const columns = () => page.getByRole("columnheader").allTextContents();
		const cells = () => row.getByRole("cell").allTextContents();
		expect([(await columns())[0], (await cells())[0]]).toEqual(["partition", "default"]);
		await page.setViewportSize({ width: 390, height: 844 });
		await expect.poll(async () => (await columns())[0]).toContain("name");
		expect((await columns())[1]).toBe("status");
		expect((await cells())[0]).toBe("web-1");
	});

	it("marks what is being deleted", async () => {
		const { server, url } = await startCatalog();
		const id = idOf(Workload, "stuck");
		const data = create(WorkloadSchema, { host: "10.0.0.1", ports: { http: 80 } });
		const metadata = { finalizers: "backup.example/copied" };
		await server.client.write({ resource: resourceOf(Workload, { id, data, metadata }) });
		const { page } = await openPage(`${url}#/types/catalog.v1.Workload`);
		await page.locator('[data-name="stuck"]').waitFor();
		await server.client.delete({ id });
		await page.locator('.deleting[data-name="stuck"]').waitFor();
		await page.getByRole("link", { name: "stuck" }).click();
		// Since when, by whom, for what, and who is known to end that.
		const deletion = page.getByRole("region", { name: "Deletion" });
		await deletion
			.getByRole("heading", { name: /^Being deleted since .* requested by \S/ })
			.waitFor();
		await deletion.getByText("finalizer backup.example/copied").waitFor();
		await deletion.getByText("No controller of this cluster manages this type").waitFor();
		const controllers = page.getByRole("region", { name: "Controllers" });
		await controllers.getByRole("link", { name: "catalog-prober" }).waitFor();
		expect(await axeViolations(page)).toEqual([]);
		await deletion.getByRole("link", { name: "edit the resource" }).click();
		await page.locator(".editor").waitFor();
	});

	it("has elements only for rows in sight, and finds any row", async () => {
		const { server, url } = await startCatalog();
		for (let at = 0; at < 3_000; at += 1) {
			const id = idOf(Namespace, `n-${String(at).padStart(4, "0")}`);
			await server.client.write({ resource: resourceOf(Namespace, { id }) });
		}
		const { page } = await openPage(`${url}#/types/tenancy.v1.Namespace`);
		await page.getByText("3,001 resources").waitFor();
		expect(await page.locator("[data-index]").count()).toBeLessThan(80);
		await page.keyboard.press("/");
		await page.keyboard.type("n-2999");
		await page.getByText("1 of 3,001 resources").waitFor();
		await page.locator('[data-name="n-2999"]').waitFor();
		expect(page.url()).toContain("q=n-2999");
	});
});

describeWith("chromium")("the page of a resource", () => {
	it("says beside the name what fails, and has its message on a phone", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page } = await openPage(`${url}#/types/catalog.v1.HealthCheck/web-1?${place}`);
		await page.locator(".page-head .badge.bad", { hasText: "Healthy=False" }).waitFor();
		// The state of the connection does not look like that of the resource.
		expect(await page.locator('[data-phase="live"] .badge.good').count()).toBe(0);
		await page.setViewportSize({ width: 390, height: 844 });
		const card = page.getByRole("region", { name: "Conditions" });
		await card.waitFor();
		for (const text of ["nothing listens on 10.0.0.1", "catalog-prober", "ago"]) {
			const box = await card.getByText(text).first().boundingBox();
			expect([text, (box?.x ?? 0) + (box?.width ?? 1_000) < 390]).toEqual([text, true]);
		}
		expect(await card.locator(".scroll-x").evaluate((at) => at.scrollWidth - at.clientWidth)).toBe(
			0,
		);
		expect(await axeViolations(page)).toEqual([]);
	});

	it("indents the comments of all fields alike, and shows code as code", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page } = await openPage(`${url}#/types/catalog.v1.HealthCheck/web-1?${place}`);
		const comments = page.locator(".tree .comment");
		await comments.getByText("The interval between two probes").waitFor();
		await comments.locator("code", { hasText: /^\/$/ }).waitFor();
		const indents = await comments.evaluateAll((all) =>
			all.map((each) => getComputedStyle(each).paddingLeft),
		);
		expect(indents.length).toBeGreaterThan(2);
		expect(new Set(indents).size).toBe(1);
	});
});

describeWith("chromium", "openssl")("every page", () => {
	it.each(["light", "dark"] as const)(
		"is accessible, and within its content security policy, in %s",
		async (colorScheme) => {
			const { server, url } = await startCatalog();
			await declareService(server);
			await declareWorkload(server, "web-1", "10.0.0.1");
			const { page, problems } = await openPage(url, { colorScheme });
			for (const [path, text] of [
				["#/", "Resources by type"],
				["#/types", "Registered types"],
				["#/types/catalog.v1.HealthCheck", "Healthy=False"],
				[`#/types/catalog.v1.HealthCheck/web-1?${place}`, "Nothing references it."],
				["#/controllers", "catalog-prober"],
				["#/controllers/catalog-prober", "on average"],
				["#/nowhere", "Not found"],
			] as const) {
				await page.goto(`${url}${path}`);
				await page.getByText(text).first().waitFor();
				expect([path, await axeViolations(page)]).toEqual([path, []]);
			}
			await page.keyboard.press("?");
			await page.getByRole("dialog", { name: "Help" }).waitFor();
			expect(await axeViolations(page)).toEqual([]);
			await page.keyboard.press("Escape");
			expect(problems).toEqual([]);
		},
	);

	it("shows texts of resources as text", async () => {
		const { server, url } = await startCatalog();
		const { client } = server;
		const id = idOf(Namespace, "hostile");
		const declare = (description: string, metadata: Record<string, string>) =>
			client.write({
				resource: resourceOf(Namespace, {
					...{ id, metadata },
					data: create(NamespaceSchema, { description }),
				}),
			});
		await declare(script, { note: script });
		const { resource } = await declare(`${script}!`, {});
		await client.writeStatus({
			...(resource?.id && { id: resource.id }),
			key: "hostile",
			status: {
				observedGeneration: resource?.generation ?? "",
				conditions: [{ type: "Ready", state: 2, reason: "Hostile", message: script }],
			},
		});
		const { page, problems } = await openPage(`${url}#/types/tenancy.v1.Namespace`);
		const dialogs: string[] = [];
		page.on("dialog", (dialog) => {
			dialogs.push(dialog.message());
			void dialog.dismiss();
		});
		await page.getByText(script).first().waitFor();
		await page.getByRole("link", { name: "hostile" }).click();
		await page.locator("td", { hasText: script }).waitFor();
		await page.locator("del", { hasText: script }).first().waitFor();
		await page.locator("pre", { hasText: script }).waitFor();
		await page.goto(`${url}#/types/tenancy.v1.Namespace/hostile/edit?partition=default`);
		await page.locator(".cm-content", { hasText: "<script>alert(2)</script>" }).waitFor();
		await page.goto(`${url}#/types/tenancy.v1.Namespace?q=${encodeURIComponent(script)}`);
		await page.locator('[data-name="hostile"]').waitFor();
		await page.goto(`${url}#/types/${encodeURIComponent(script)}`);
		await page.getByText(script).first().waitFor();
		expect(await page.locator("img, script:not([src])").count()).toBe(0);
		expect([dialogs, problems]).toEqual([[], []]);
	});

	it("works below a prefix", async () => {
		const { server } = await startCatalog();
		const { url: proxy } = await startPrefixProxy(server.address, "/team/plinth");
		const { page, problems } = await openPage(`${proxy}/console`);
		await page.getByText("Nothing needs attention.").waitFor();
		await page.goto(`${proxy}/console/#/types/tenancy.v1.Partition`);
		await page.getByRole("link", { name: "default" }).waitFor();
		expect(problems).toEqual([]);
	});

	it("works over TLS", async () => {
		const folder = await temporaryFolder();
		const [certFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
		await selfSignedCertificate(certFile, keyFile);
		const { server, url } = await startCatalog({ tls: { certFile, keyFile } });
		await declareWorkload(server, "web-1", "10.0.0.1");
		expect(url).toMatch(/^https:/);
		const { page, problems } = await openPage(`${url}#/types/catalog.v1.Workload`);
		await page.locator('[data-name="web-1"]').waitFor();
		await page.locator('[data-phase="live"]').waitFor();
		expect(problems).toEqual([]);
	});

	it("is reached by keyboard alone", async () => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page } = await openPage(url);
		await page.getByText("Resources by type").waitFor();
		await page.keyboard.press("Control+k");
		await page.keyboard.type("workload web");
		await page.getByRole("option", { name: "web-1" }).waitFor();
		await page.keyboard.press("Enter");
		await page.getByRole("heading", { name: "web-1" }).waitFor();
		await page.keyboard.press("Control+k");
		await page.keyboard.type("health");
		await page.keyboard.press("Enter");
		await page.locator('[data-name="web-1"] a').waitFor();
		await page.getByRole("searchbox", { name: "Filter" }).focus();
		await page.keyboard.press("Escape");
		await page.locator('[data-name="web-1"] a').focus();
		await page.keyboard.press("Enter");
		await page.getByRole("heading", { name: "web-1" }).waitFor();
	});
});

/** The compressed size of the worker that all tabs share, of whose requests no page tells. */
function workerBytes(): number {
	const files = globSync("assets/live-worker-*.js.br", { cwd: fileURLToPath(consoleFolder) });
	expect(files).toHaveLength(1);
	return statSync(new URL(files[0] ?? "", consoleFolder)).size;
}

/** The most JavaScript that a first view may load, in compressed bytes. */
const budgetBytes = 350_000;

describeWith("chromium")("a first view", () => {
	it.each([
		["the overview", "#/", "Resources by type"],
		["a resource", `#/types/catalog.v1.Workload/web-1?${place}`, "Recent versions"],
	])("of %s loads little JavaScript", async (_name, path, text) => {
		const { server, url } = await startCatalog();
		await declareWorkload(server, "web-1", "10.0.0.1");
		const { page } = await openPage("about:blank");
		let bytes = workerBytes();
		page.on("response", (response) => {
			if (new URL(response.url()).pathname.endsWith(".js")) {
				bytes += Number(response.headers()["content-length"]);
			}
		});
		await page.goto(`${url}${path}`);
		await page.getByText(text).first().waitFor();
		expect(bytes).toBeGreaterThan(10_000);
		expect(bytes).toBeLessThan(budgetBytes);
	});
});
