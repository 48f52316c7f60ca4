import { readFileSync } from "node:fs";
import axe from "axe-core";
import { type Browser, chromium, type Page } from "playwright-core";
import { onTestFinished } from "vitest";

/** A page in Chromium. */
export interface OpenPage {
	readonly page: Page;
	/** What the browser reported: violations of the content security policy, errors, and requests that failed. */
	readonly problems: readonly string[];
}

/** The browser that all tests of a file share. */
let browser: Promise<Browser> | undefined;

/** Starts the browser, unless it runs. */
function runningBrowser(): Promise<Browser> {
	browser ??= chromium.launch({
		executablePath: "/usr/bin/chromium",
		// Tests may run as root.
		args: ["--no-sandbox", "--disable-dev-shm-usage"],
	});
	return browser;
}

/** Ends the browser. */
export async function closeBrowser(): Promise<void> {
	await (await browser)?.close();
	browser = undefined;
}

/** Opens a URL in a context of its own, as another user would. It is closed when the test is over. */
export async function openPage(
	url: string,
	{ colorScheme = "light" }: { readonly colorScheme?: "light" | "dark" } = {},
): Promise<OpenPage> {
	const context = await (await runningBrowser()).newContext({
		colorScheme,
		// Certificates of tests sign themselves.
		ignoreHTTPSErrors: true,
		viewport: { width: 1280, height: 720 },
	});
	onTestFinished(() => context.close());
	// Other tests may keep the machine busy.
	context.setDefaultTimeout(300_000);
	const page = await context.newPage();
	const problems: string[] = [];
	page.on("console", (message) => {
		if (message.type() === "error" || message.type() === "warning") {
			problems.push(`console: ${message.text()}`);
		}
	});
	page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
	const origin = new URL(url).origin;
	page.on("request", (request) => {
		if (new URL(request.url()).origin !== origin) {
			problems.push(`request to another origin: ${request.url()}`);
		}
	});
	await page.goto(url);
	return { page, problems };
}

/** Hides a page, as another tab in front of it would, or shows it again. Without a screen, all pages can be seen. */
export async function setVisible(page: Page, isVisible: boolean): Promise<void> {
	await page.evaluate(
		(state) => {
			Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
			document.dispatchEvent(new Event("visibilitychange"));
		},
		isVisible ? "visible" : "hidden",
	);
}

/** What axe finds in a page: the rule, and the elements that break it. */
export async function axeViolations(page: Page): Promise<readonly string[]> {
	// Evaluated by the debugger, to which the content security policy does not apply.
	await page.evaluate(axe.source);
	const { violations } = await page.evaluate(() =>
		(globalThis as unknown as { axe: typeof axe }).axe.run(document),
	);
	return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ")}`);
}

/** The memory of all processes of the browser after a collection of garbage, in MiB. Pages share it by their proportions. */
export async function browserMemory(page: Page): Promise<number> {
	const session = await page.context().newCDPSession(page);
	await session.send("HeapProfiler.collectGarbage");
	await session.detach();
	const own = await runningBrowser();
	const system = await own.newBrowserCDPSession();
	const { processInfo } = await system.send("SystemInfo.getProcessInfo");
	await system.detach();
	const kibibytes = processInfo.map(({ id }) => {
		const rollup = readFileSync(`/proc/${id}/smaps_rollup`, "utf8");
		return Number(/^Pss: +(\d+) kB$/m.exec(rollup)?.[1] ?? 0);
	});
	return kibibytes.reduce((sum, each) => sum + each, 0) / 1_024;
}
