/** What Chromium shows while the console is being built, and afterwards. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { silentLogger } from "@plinth/runtime";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import { chromium, type Page } from "playwright-core";
import { expect, it, onTestFinished } from "vitest";
import { echoRouter } from "../listener/echo-router.fixture.ts";
import { startListener } from "../started-listener.fixture.ts";
import { ConsoleBuildProcess } from "./console-build.ts";
import { createConsolePages } from "./console-pages.ts";

/** Serves a console that a program builds, and opens it. */
async function open(
	program: (folder: string, go: string) => string,
): Promise<{ readonly page: Page; readonly statuses: number[]; finish(): void }> {
	const root = await temporaryFolder();
	const [folder, go] = [join(root, "page"), join(root, "go")];
	const buildProgram = join(root, "build.mjs");
	writeFileSync(buildProgram, program(folder, go));
	const build = new ConsoleBuildProcess(silentLogger);
	onTestFinished(() => build.stop());
	const pages = createConsolePages({
		installed: async () => ({ folder, buildProgram }),
		...{ build, logger: silentLogger },
	});
	const { address } = await startListener(echoRouter({}), { pages, http2: "node" });
	const browser = await chromium.launch({
		executablePath: "/usr/bin/chromium",
		// Tests may run as root.
		args: ["--no-sandbox", "--disable-dev-shm-usage"],
	});
	onTestFinished(() => browser.close());
	const page = await browser.newPage();
	// Builds have a low priority: on a busy machine, they wait for minutes.
	page.setDefaultTimeout(300_000);
	const statuses: number[] = [];
	page.on("response", (response) => {
		if (new URL(response.url()).pathname === "/console/") {
			statuses.push(response.status());
		}
	});
	await page.goto(`${address}/console/#/types/demo.v1.Artist`);
	return { page, statuses, finish: () => writeFileSync(go, "") };
}

describeWith("chromium")("a console that is not built", () => {
	it("is shown by the page that waits for it, with the same link", async () => {
		const { page, statuses, finish } = await open(
			// Complete at once, as the console is: a page that was read half written would be served until the next build.
			(folder, go) => `import { existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
			while (!existsSync(${JSON.stringify(go)})) await new Promise((then) => setTimeout(then, 10));
			mkdirSync(${JSON.stringify(`${folder}-new`)});
			writeFileSync(${JSON.stringify(join(`${folder}-new`, "index.html"))}, "<h1>The console</h1>");
			renameSync(${JSON.stringify(`${folder}-new`)}, ${JSON.stringify(folder)});`,
		);
		await page.getByText("The console is being built").waitFor();
		// It has loaded itself again.
		await expect.poll(() => statuses.length).toBeGreaterThan(2);
		finish();
		await page.getByRole("heading", { name: "The console" }).waitFor();
		expect(new URL(page.url()).hash).toBe("#/types/demo.v1.Artist");
		expect(new Set(statuses)).toEqual(new Set([503, 200]));
	});

	it("says what failed, and how to build it by hand", async () => {
		const { page } = await open(
			() => `console.error("Cannot find module 'vite'"); process.exitCode = 1;`,
		);
		await page.getByText("The console could not be built").waitFor();
		await page.getByText("Cannot find module 'vite'").waitFor();
		await page.getByText("--filter @plinth/console build").waitFor();
	});
});
