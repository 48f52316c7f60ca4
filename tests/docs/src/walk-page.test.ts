import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { Checkout } from "./checkout.ts";
import { parsePage } from "./page.ts";
import { Terminals } from "./terminals.ts";
import { walkPage } from "./walk-page.ts";

let checkout: Checkout;
let terminals: Terminals;

beforeAll(() => {
	checkout = new Checkout(new Map());
	terminals = new Terminals(checkout, 7575);
});
afterAll(() => {
	terminals.kill();
	checkout.remove();
});

/** A code block, with a paragraph before it. */
function block(fence: string, text: string, before = "Then:"): string {
	return `${before}\n\n\`\`\`${fence}\n${text}\n\`\`\`\n\n`;
}

const manifest = block(
	"json examples/own/package.json",
	'{"type": "module"}',
	"The `package.json`:",
);
const compiler = block(
	"json examples/own/tsconfig.json",
	'{ "extends": "../../tsconfig.base.json" }',
	"The `tsconfig.json`:",
);
const code = (text: string) => block("ts examples/own/code.ts", text, "In `code.ts`:");
const buf = block(
	"yaml examples/own/buf.yaml",
	"version: v2\nmodules: [{ path: proto }]",
	"In `buf.yaml`:",
);
const proto = (text: string) =>
	block("proto examples/own/proto/own/v1/own.proto", text, "In `own.proto`:");
const goodProto = 'syntax = "proto3";\n\npackage own.v1;\n\nmessage Own {}';

function walk(...parts: readonly string[]): Promise<void> {
	return walkPage(parsePage("page.md", parts.join("")), checkout, terminals);
}

describe("walkPage", () => {
	it("accepts a page that is true", async () => {
		await walk(
			block("yaml some.yaml", "hello: there", "In `some.yaml`:"),
			block("sh", "cat some.yaml\necho 'the   time' is $RANDOM"),
			block("text", "hello: there\nthe  time is …"),
			block("sh", "seq 9; false"),
			block("text", "1\n…\n9"),
			block("sh clock", "echo started; sleep 60"),
			block("text clock", "started"),
			...[manifest, compiler, code("export const one: number = 1;"), buf, proto(goodProto)],
		);
	});

	it.each([
		["a command that fails", block("sh", "false\ntrue"), "page.md:3: a command failed"],
		[
			"a server that does not start",
			block("sh server", "cat missing.yaml"),
			"a command failed before it printed Try next",
		],
		["other output", block("sh", "echo a") + block("text", "b"), "page.md:9: printed:\na"],
		["a block of no known kind", block("", "drawing"), 'nothing checks a block of " "'],
		["a file that the text does not name", block("yaml a.yaml", "a"), "does not name `a.yaml`"],
		["a file that nothing uses", block("yaml a.yaml", "a", "`a.yaml`:"), "no command after it"],
		["an unknown setting", block("yaml configuration", "lisen: a"), "unknown key lisen"],
		["a malformed access file", block("yaml access", "tokens: 1"), "policies: is required"],
		["a file in a linked folder", block("ts apps/a.ts", "", "`a.ts`:"), "apps/a.ts is linked"],
		["wrong types", `${manifest}${compiler}${code('export const one: number = "";')}`, "TS2322"],
		["a proto against the rules", `${manifest}${buf}${proto('syntax = "proto3";')}`, "package"],
	])("refuses %s", async (_, markdown, message) => {
		await expect(walk(markdown)).rejects.toThrow(message);
	});
});
