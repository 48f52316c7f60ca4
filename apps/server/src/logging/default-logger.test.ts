import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const server = fileURLToPath(new URL("../server.ts", import.meta.url));

/** Runs a program that embeds a server with a controller that fails, and returns what it writes to standard error. */
async function linesOf(logger: string): Promise<readonly string[]> {
	const program = `
		const { createServer } = await import(${JSON.stringify(server)});
		const { silentLogger } = await import("@plinth/runtime");
		const { defineModule } = await import("@plinth/server");
		const { defineController } = await import("@plinth/controller");
		const { Namespace } = await import("@plinth/resource");
		const failed = Promise.withResolvers();
		const reconcile = async () => {
			failed.resolve();
			throw new Error("the controller is broken");
		};
		const controllers = [defineController({ name: "broken", manages: Namespace, reconcile })];
		const server = createServer({
			storage: { kind: "memory" },
			listen: { host: "127.0.0.1", port: 0 },
			modules: [defineModule({ name: "broken", types: [], controllers })],
			${logger}
		});
		await server.start();
		await failed.promise;
		await server.stop();
	`;
	const args = ["--input-type=module", "--eval", program];
	const { stderr } = await promisify(execFile)(process.execPath, args, {
		cwd: fileURLToPath(new URL("../..", import.meta.url)),
	});
	return stderr.split("\n").filter(Boolean);
}

it("an embedded server logs warnings and errors, and nothing else", async () => {
	const lines = (await linesOf("")).map((line) => JSON.parse(line));
	expect(lines.some(({ err }) => err?.message === "the controller is broken")).toBe(true);
	expect(lines.every(({ level }) => level >= 40)).toBe(true);
});

it("an embedded server logs nothing if it is told so", async () => {
	expect(await linesOf("logger: silentLogger,")).toEqual([]);
});
