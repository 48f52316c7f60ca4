import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { temporaryFolder } from "@plinth/test-support";
import { expect, it } from "vitest";
import { Terminal } from "./terminal.ts";

function terminalIn(folder: string, color = false) {
	const output: string[] = [];
	const terminal = new Terminal({ write: (text) => void output.push(text), color, folder });
	return { terminal, printed: () => output.splice(0).join("") };
}

it("shows log lines in a readable form, without those of every start, and other lines as they are", () => {
	const { terminal, printed } = terminalIn("/nowhere");
	terminal.serverLine('{"level":30,"time":0,"pid":1,"hostname":"h","msg":"server ready"}');
	terminal.serverLine('{"level":40,"time":0,"pid":1,"site":"a","msg":"slow"}');
	terminal.serverLine("hello");
	terminal.serverLine('{"level":');
	expect(printed()).toMatch(
		/^\[\d\d:\d\d:\d\d\.000\] WARN: slow \{"site":"a"\}\nhello\n\{"level":\n$/,
	);
});

it("shows an error of the project in the log with its code, and the code only once per version", async () => {
	const folder = await temporaryFolder();
	await mkdir(join(folder, "src"));
	await writeFile(
		join(folder, "src/site.ts"),
		"export function check() {\n\tthrow new Error();\n}\n",
	);
	const { terminal, printed } = terminalIn(folder);
	const stack = `Error: no URL\n    at check (file://${folder}/src/site.ts:2:8)\n    at run (file:///plinth/run.js:1:1)`;
	const line = JSON.stringify({
		...{ level: 50, time: 0, err: { type: "Error", message: "no URL", stack } },
		...{ controller: "prober", msg: "reconcile failed" },
	});
	const place = "src/site.ts:2:8: no URL";
	const frame = `

    1 | export function check() {
  > 2 |   throw new Error();
      |         ^
    3 | }
`;
	terminal.serverLine(line);
	expect(printed().slice(15)).toBe(
		`ERROR: reconcile failed {"controller":"prober"}\n${place}${frame}\n`,
	);
	terminal.serverLine(line);
	expect(printed().slice(15)).toBe(`ERROR: reconcile failed {"controller":"prober"}\n${place}\n`);
	terminal.restarted();
	terminal.serverLine(line);
	expect(printed()).toContain(frame);
});

it("keeps the stack of an error that is not of the project, once per version", () => {
	const { terminal, printed } = terminalIn("/nowhere");
	const err = {
		type: "Error",
		message: "defect",
		stack: "Error: defect\n    at f (file:///x.js:1:1)",
	};
	const line = JSON.stringify({ level: 50, time: 0, err, msg: "failed" });
	terminal.serverLine(line);
	expect(printed().slice(15)).toBe(`ERROR: failed\n${err.stack}\n`);
	terminal.serverLine(line);
	expect(printed().slice(15)).toBe("ERROR: failed\nError: defect\n");
	terminal.restarted();
	terminal.serverLine(line);
	expect(printed()).toContain("    at f (file:///x.js:1:1)");
});

it("shows no stack of an error that a call failed with", () => {
	const { terminal, printed } = terminalIn("/nowhere");
	const message = "[not_found] there is no such site";
	const stack = `ConnectError: ${message}\n    at serve (file:///plinth/call.js:1:1)`;
	const err = { type: "ConnectError", message, stack, isWireError: true, code: 5 };
	terminal.serverLine(JSON.stringify({ level: 40, time: 0, err, msg: "reconcile failed" }));
	expect(printed().slice(15)).toBe(`WARN: reconcile failed\n${message}\n`);
});

it("is plain without colors, and marks lines with them", () => {
	const plain = terminalIn("/nowhere");
	plain.terminal.say("ready in 0.5 s", "green");
	expect(plain.printed()).toBe("[plinth] ready in 0.5 s\n");
	const colored = terminalIn("/nowhere", true);
	colored.terminal.problem("a.ts:1:1: wrong\n\n  > 1 | a\n      | ^\n");
	expect(colored.printed()).toContain("\u001b[31m  > 1 | a\u001b[39m");
});
