/** Hostile texts in everything that the console shows, in Chromium: nothing runs, and no page is wider than its window. */
import { create } from "@bufbuild/protobuf";
import { contentChanged, defineController } from "@plinth/controller";
import { NamespaceSchema } from "@plinth/proto/gen/plinth/tenancy/v1/tenancy_pb.js";
import { idOf, Namespace, resourceOf } from "@plinth/resource";
import { createServer } from "@plinth/server";
import { defineModule } from "@plinth/server/module";
import { describeWith } from "@plinth/test-support";
import type { Page } from "playwright-core";
import { afterAll, expect, it, onTestFinished } from "vitest";
import { closeBrowser, openPage } from "./browser.fixture.ts";
import { declareNote, noteType } from "./commented-type.fixture.ts";

afterAll(closeBrowser);

const script = `<img src=x onerror=alert(1)><script>alert(2)</script>"'\${alert(3)}javascript:alert(4)`;
/** Not ended: it would turn all that follows around. */
const bidi = "\u202Egnp.exe\u2067";
const long = "w".repeat(900);
const hostile = `${script} ${bidi} ${long}`;
/** The longest name that there is. */
const longName = `n${"-x".repeat(31)}`;

/** A controller whose reconciles fail with a hostile error, and whose event is hostile. */
const failing = defineController({
	name: "hostile-controller",
	manages: Namespace,
	when: contentChanged,
	reconcile: async (ctx, { id }) => {
		if (id.name === longName) {
			ctx.event({ reason: "Hostile", message: hostile });
			throw new Error(hostile);
		}
	},
});

/** A type whose comments are hostile. */
const Note = noteType(hostile);

async function start() {
	const server = createServer({
		storage: { kind: "memory" },
		listen: { host: "127.0.0.1", port: 0 },
		modules: [defineModule({ name: "hostile", types: [Note], controllers: [failing] })],
	});
	await server.start();
	onTestFinished(() => server.stop());
	const { client } = server;
	await declareNote(server, Note, "note");
	const id = idOf(Namespace, longName);
	const declare = (description: string) =>
		client.write({
			resource: resourceOf(Namespace, {
				...{ id, metadata: { note: hostile, [`key-${"k".repeat(50)}`]: bidi } },
				data: create(NamespaceSchema, { description }),
			}),
		});
	await declare(hostile);
	const { resource } = await declare(`${hostile}!`);
	await client.writeStatus({
		...(resource?.id && { id: resource.id }),
		key: "hostile",
		status: {
			observedGeneration: resource?.generation ?? "",
			conditions: [{ type: "Ready", state: 2, reason: "R".repeat(100), message: hostile }],
		},
	});
	return { server, url: `${server.address}/console/` };
}

/** What is wrong with a page: elements that hostile text has made, and text that reaches beyond its place. */
function faultsOf(page: Page): Promise<readonly string[]> {
	return page.evaluate(() => {
		const faults: string[] = [];
		const wide = [...document.querySelectorAll("body *")].filter((element) => {
			const { right } = element.getBoundingClientRect();
			return (
				right > document.documentElement.clientWidth + 1 &&
				element.closest(".scroll-x, .rows, pre, .react-flow, .shell > nav") === null
			);
		});
		for (const element of wide.slice(0, 5)) {
			faults.push(
				`too wide: ${element.tagName} ${element.className} ${element.textContent?.slice(0, 40)}`,
			);
		}
		for (const element of document.querySelectorAll("img, script:not([src]), iframe")) {
			faults.push(`an element: ${element.outerHTML.slice(0, 100)}`);
		}
		const { scrollWidth, clientWidth } = document.documentElement;
		if (scrollWidth > clientWidth) {
			faults.push(`the page is ${scrollWidth} wide`);
		}
		const main = document.querySelector("main");
		if (main !== null && main.scrollWidth > main.clientWidth) {
			faults.push(`the main part is ${main.scrollWidth} wide, and not ${main.clientWidth}`);
		}
		const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		for (let node = texts.nextNode(); node !== null; node = texts.nextNode()) {
			const { parentElement } = node;
			if (parentElement !== null && /[\u202E\u2067]/.test(node.textContent ?? "")) {
				const { display, unicodeBidi } = getComputedStyle(parentElement);
				const hasOthers = [...parentElement.childNodes].some(
					(each) => each !== node && each.textContent?.trim() !== "",
				);
				if (hasOthers || (display.startsWith("inline") && unicodeBidi !== "isolate")) {
					faults.push(`not isolated: ${parentElement.outerHTML.slice(0, 100)}`);
				}
			}
		}
		return faults;
	});
}

describeWith("chromium")("hostile texts", () => {
	it.each([
		["a wide window", 1_280],
		["a phone", 390],
	])("run nothing and break no page in %s", { timeout: 600_000 }, async (_name, width) => {
		const { url } = await start();
		const { page, problems } = await openPage(url);
		await page.setViewportSize({ width, height: 800 });
		const dialogs: string[] = [];
		page.on("dialog", (dialog) => {
			dialogs.push(dialog.message());
			void dialog.dismiss();
		});
		const found: [where: string, faults: readonly string[]][] = [];
		const check = async (where: string) => {
			const faults = await faultsOf(page);
			if (faults.length > 0) {
				found.push([where, faults]);
			}
		};
		const at = `#/types/tenancy.v1.Namespace/${longName}`;
		for (const [path, selector] of [
			["#/", ".bad-text"],
			["#/types/tenancy.v1.Namespace", `[data-name="${longName}"]`],
			["#/types/tenancy.v1.Namespace?q=onerror", `[data-name="${longName}"]`],
			[`${at}?partition=default`, "text=hostile-controller"],
			[`${at}/graph?partition=default`, ".graph-node"],
			[`${at}/edit?partition=default`, ".cm-content"],
			["#/types/commented.v1.Note/note?partition=default&namespace=default", ".tree .comment"],
			["#/controllers", "text=onerror"],
			["#/controllers/hostile-controller", "text=onerror"],
			[`#/types/${encodeURIComponent(script)}`, "text=onerror"],
			[`#/controllers/${encodeURIComponent(script)}`, "text=onerror"],
		] as const) {
			await page.goto(`${url}${path}`);
			await page.locator(selector).first().waitFor();
			await check(path);
		}
		await page.goto(`${url}${at}?partition=default`);
		for (const text of ["Recent versions", "Events", "Conditions"]) {
			await page.getByRole("region", { name: text }).getByText("onerror").first().waitFor();
		}
		await check("the resource");
		await page.getByRole("button", { name: "Delete…" }).click();
		await page.getByRole("dialog", { name: "Delete" }).getByText("accepted").waitFor();
		await check("the deletion");
		expect(found).toEqual([]);
		// There is no controller with such a name.
		const others = problems.filter((each) => !each.includes("status of 404"));
		expect([dialogs, others]).toEqual([[], []]);
	});
});
