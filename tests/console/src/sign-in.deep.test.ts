/** Signing in to the console of a server with tokens, in Chromium. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { newToken } from "@plinth/server";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import { afterAll, expect, it } from "vitest";
import { axeViolations, closeBrowser, openPage } from "./browser.fixture.ts";
import { startCatalog } from "./started-catalog.fixture.ts";

afterAll(closeBrowser);

/** A server that accepts one token, which the test can replace. */
async function startWithToken() {
	const file = join(await temporaryFolder(), "access.yaml");
	const accept = (sha256: string, operations: string) =>
		writeFileSync(
			file,
			`policies: { some: [{ operations: ${operations} }] }\ntokens: [{ subject: alice, sha256: ${sha256}, policies: [some] }]\n`,
		);
	const { token, sha256 } = newToken();
	accept(sha256, '["*"]');
	const started = await startCatalog({ access: { file } });
	return { ...started, token, sha256, accept };
}

describeWith("chromium")("a server with tokens", () => {
	it("asks for one, keeps it in the tab alone, and forgets it at the sign-out", async () => {
		const { url, token } = await startWithToken();
		const { page } = await openPage(`${url}#/types/tenancy.v1.Partition`);
		const field = page.getByLabel("Token");
		await field.waitFor();
		expect(await axeViolations(page)).toEqual([]);
		await field.fill("wrong");
		await page.keyboard.press("Enter");
		await page.getByText("does not accept this token").waitFor();
		const urls: string[] = [];
		page.on("request", (request) => urls.push(request.url()));
		await field.fill(token);
		await page.keyboard.press("Enter");
		// The link that was opened first.
		await page.getByRole("link", { name: "default" }).waitFor();
		await page.reload();
		await page.getByRole("link", { name: "default" }).waitFor();
		urls.push(page.url());
		expect(urls.filter((each) => each.includes(token))).toEqual([]);
		const stored = () =>
			page.evaluate(() => [
				JSON.stringify(localStorage),
				document.cookie,
				JSON.stringify(sessionStorage),
			]);
		const [local, cookie, session] = await stored();
		expect([local, cookie]).toEqual(["{}", ""]);
		expect(session).toContain(token);
		await page.getByRole("button", { name: "Sign out" }).click();
		await field.waitFor();
		expect(await stored()).toEqual(["{}", "", "{}"]);
	});

	it("leads back to the sign-in when it accepts the token no more", async () => {
		const { url, server, token, accept } = await startWithToken();
		const { page } = await openPage(`${url}#/types/tenancy.v1.Partition`);
		await page.getByLabel("Token").fill(token);
		await page.keyboard.press("Enter");
		await page.locator('[data-phase="live"]').waitFor();
		accept(newToken().sha256, '["*"]');
		await server.reload();
		await page.getByText("does not accept this token").waitFor();
	});

	it("does not hint at what the caller may not see", async () => {
		const { url, token, sha256, accept, server } = await startWithToken();
		accept(sha256, '["operator:read"], type: tenancy.v1.Partition');
		await server.reload();
		const { page } = await openPage(url);
		await page.getByLabel("Token").fill(token);
		await page.keyboard.press("Enter");
		await page.getByText("The overview is not available").waitFor();
		const links = await page.getByRole("navigation").getByRole("link").allInnerTexts();
		expect(links).toEqual(["Overview", "Controllers", "Types", "Partition"]);
	});

	it("says what the caller may not do, page by page, and goes on with the rest", async () => {
		const { url, token, sha256, accept, server } = await startWithToken();
		accept(sha256, '["operator:read"], type: tenancy.v1.Partition');
		await server.reload();
		const { page, problems } = await openPage(url);
		await page.getByLabel("Token").fill(token);
		await page.keyboard.press("Enter");
		await page.getByText("The overview is not available").waitFor();
		await page.goto(`${url}#/types/tenancy.v1.Partition`);
		await page.locator('[data-name="default"]').waitFor();
		await page.goto(`${url}#/types/tenancy.v1.Namespace`);
		await page.getByText("The server has no such type, or you may not use it.").waitFor();
		await page.goto(`${url}#/types/tenancy.v1.Partition/default`);
		await page.getByRole("region", { name: "Identity" }).waitFor();
		await page.locator('[data-phase="live"]').waitFor();
		// A refusal is not a reason to sign in again.
		expect(await page.getByLabel("Token").count()).toBe(0);
		expect(problems.filter((each) => !/status of 40[13]/.test(each))).toEqual([]);
	});

	it("gives each tab the rights of its own token, although tabs share a worker", async () => {
		const { url, token } = await startWithToken();
		const { page } = await openPage(`${url}#/types/tenancy.v1.Partition`);
		await page.getByLabel("Token").fill(token);
		await page.keyboard.press("Enter");
		await page.locator('[data-name="default"]').waitFor();
		const other = await page.context().newPage();
		await other.goto(`${url}#/types/tenancy.v1.Partition`);
		await other.getByLabel("Token").waitFor();
		expect(await other.locator("[data-name]").count()).toBe(0);
		await page.getByRole("button", { name: "Sign out" }).click();
		await page.getByLabel("Token").waitFor();
	});
});
