import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { freePort, freePorts, freePortsInARow } from "./free-ports.ts";

const run = promisify(execFile);
const module = new URL("./free-ports.ts", import.meta.url).href;

describe("free ports", () => {
	it("differ within a process, beyond a block of it", async () => {
		const ports = await freePorts(450);
		expect(new Set(ports).size).toBe(450);
		const row = await freePortsInARow(150);
		expect(ports.filter((port) => port >= row && port < row + 150)).toEqual([]);
		await expect(freePortsInARow(200)).rejects.toThrow("no more than 199");
	});

	it("differ between processes that live at the same time", async () => {
		const script = `
			import { freePorts } from ${JSON.stringify(module)};
			console.log((await freePorts(100)).join(" "));
			process.stdin.resume();
		`;
		const others = Array.from({ length: 5 }, () =>
			run(process.execPath, ["--input-type=module", "--eval", script]),
		);
		onTestFinished(() => {
			for (const { child } of others) {
				child.kill();
			}
		});
		const printed = await Promise.all(
			others.map(async ({ child }) => {
				const [line] = child.stdout === null ? [""] : await once(child.stdout, "data");
				return String(line).trim().split(" ");
			}),
		);
		for (const { child } of others) {
			child.stdin?.end();
		}
		await Promise.all(others);
		expect(new Set(printed.flat()).size).toBe(500);
	});

	it("are none that somebody listens on", async () => {
		const port = await freePort();
		const listener = createServer().listen(port + 1, "127.0.0.1");
		onTestFinished(() => {
			listener.close();
		});
		await once(listener, "listening");
		expect(await freePorts(3)).not.toContain(port + 1);
	});
});
