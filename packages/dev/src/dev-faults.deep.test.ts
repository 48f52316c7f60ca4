import { describe, expect, it } from "vitest";
import { createDevProject } from "./dev-project.fixture.ts";
import { ZooClient } from "./zoo-client.fixture.ts";

const ready = /ready in \d+\.\d s\n/;
const kept = /the server before this change keeps running\n/;

const module = "src/module.ts";
const animal = "src/types/animal.ts";
const keeper = "src/controllers/keeper.ts";

function isRunning(pid: number): boolean {
	try {
		process.kill(pid, 0);
		return true;
	} catch {
		return false;
	}
}

describe("plinth dev with faults", () => {
	it("explains what is wrong, recovers from crashes, and leaves nothing behind", async () => {
		const project = await createDevProject();
		const dev = project.start();
		const zoo = new ZooClient(await dev.address());
		await dev.prints(ready);

		// Options of the module that are not valid: the server before it has not been stopped.
		await project.edit(module, "types: [Animal]", "types: [Animal, Animal]");
		const twice = await dev.prints(kept);
		expect(twice).toMatch(/\[plinth\] module zoo: .*zoo\.v1\.Animal/);
		expect(twice).not.toContain("    at ");
		await zoo.write("yogi");
		await project.edit(module, "types: [Animal, Animal]", "types: [Animal]");
		await dev.prints(ready);

		// Only types are wrong: that stops nothing.
		await project.edit(animal, "export", "export const wrong: string = 1;\nexport");
		const types = await dev.prints(ready, /\^\n/);
		expect(types).toContain(`${animal}:4:14: TS2322: Type 'number' is not assignable`);
		expect(types).toContain("  > 4 | export const wrong: string = 1;");
		await project.edit(animal, "export const wrong: string = 1;\n", "");
		await dev.prints(/no type errors are left\n/);

		// A reconciler that fails, and one that ends the process.
		await project.edit(keeper, "const animal", 'JSON.parse("hay");\n\t\tconst animal');
		const failed = await dev.prints(/\^\n/);
		expect(failed).toContain(`${keeper}:10:`);
		await project.edit(
			keeper,
			'JSON.parse("hay")',
			'setTimeout(() => { throw new Error("a bite"); })',
		);
		// Maybe before the server was ready.
		const crash = await dev.prints(
			/the server (has exited|did not start): it starts again after the next change\n/,
		);
		expect(crash).toContain("an exception was not caught");
		expect(crash).toContain(`${keeper}:10:`);
		const writing = zoo.write("boo-boo");
		await project.edit(keeper, 'setTimeout(() => { throw new Error("a bite"); });\n\t\t', "");
		await dev.prints(ready);
		await writing;

		// Killed: nobody is left to stop the servers.
		const servers = await dev.servers();
		expect(servers).toHaveLength(2);
		dev.kill("SIGKILL");
		await expect.poll(() => servers.filter(isRunning)).toEqual([]);

		// The data is free, and complete.
		const again = project.start("--no-check", "--no-generate");
		const after = new ZooClient(await again.address());
		const end = new AbortController();
		const watching = after.watch(end.signal).catch(() => {});
		await expect.poll(() => [...after.seen.keys()].sort()).toEqual(["boo-boo", "yogi"]);
		end.abort();
		again.kill("SIGINT");
		expect(await again.ended).toBe(0);
		await watching;
	});
});
