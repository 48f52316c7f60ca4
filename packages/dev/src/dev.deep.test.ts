import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { createDevProject } from "./dev-project.fixture.ts";
import { ZooClient } from "./zoo-client.fixture.ts";

const ready = /ready in \d+\.\d s\n/;
const kept = /the server before this change keeps running\n/;

describe("plinth dev", () => {
	it("restarts with each change, keeps the data, and serves on while code is broken", async () => {
		const project = await createDevProject();
		const dev = project.start("--no-check");
		const zoo = new ZooClient(await dev.address());
		// Before the first server is ready: the connections wait.
		const end = new AbortController();
		const watching = zoo.watch(end.signal);
		const written: string[] = [];
		const write = async (name: string, species?: string) => {
			await zoo.write(name, species);
			written.push(name);
		};
		await write("yogi");
		await dev.prints(ready);
		await expect.poll(() => zoo.seen.get("yogi")).toBe("Hay");

		// A controller: changed, broken, mended. Meanwhile, there are writes.
		const keeper = "src/controllers/keeper.ts";
		await project.edit(keeper, "Hay", "Straw");
		for (let count = 0; !ready.test(dev.output.slice(dev.read)); count++) {
			await write(`bear-${count}`);
			// Not so many that a busy machine has no time for the restart.
			await sleep(5);
		}
		expect(await dev.prints(ready)).toContain(`changed: ${keeper}`);
		await expect.poll(() => zoo.seen.get("yogi")).toBe("Straw");
		await project.edit(keeper, "export const keeper =", "export const =");
		const broken = await dev.prints(kept);
		expect(broken).toContain(`${keeper}:6:14: SyntaxError: `);
		expect(broken).toContain(`
    5 | /** Feeds each animal. */
  > 6 | export const = defineController({
      |              ^
    7 |   name: "keeper",
`);
		expect(broken).not.toContain("    at ");
		await write("boo-boo");
		await expect.poll(() => zoo.seen.get("boo-boo")).toBe("Straw");
		await project.edit(keeper, "export const =", "export const keeper =");
		await dev.prints(ready);

		// The hook of a type.
		const animal = "src/types/animal.ts";
		await project.edit(
			animal,
			"AnimalSchema)",
			'AnimalSchema, { validate: ({ data }) => { if (data.species === "unicorn") throw new Error("no unicorns"); } })',
		);
		await dev.prints(ready);
		await expect(zoo.write("twilight", "unicorn")).rejects.toThrow("no unicorns");
		await project.edit(animal, "export const", 'throw new Error("not today");\nexport const');
		const thrown = await dev.prints(kept);
		expect(thrown).toContain(`${animal}:4:7: not today`);
		expect(thrown).toContain('  > 4 | throw new Error("not today");');
		await project.edit(animal, 'throw new Error("not today");\n', "");
		await dev.prints(ready);

		// A proto.
		const proto = "proto/zoo/v1/animal.proto";
		await project.edit(proto, "string species = 1;", "string species = 1;\n  uint32 legs = ;");
		const unparsed = await dev.prints(kept);
		expect(unparsed).toContain(`${proto}:12:`);
		expect(unparsed).toContain("  > 12 |   uint32 legs = ;");
		await project.edit(proto, "uint32 legs = ;", "uint32 legs = 2;");
		await dev.prints(ready);
		expect(await readFile(`${project.folder}/src/gen/zoo/v1/animal_pb.ts`, "utf8")).toContain(
			"legs",
		);
		await write("ranger");

		await expect.poll(() => zoo.seen.get("ranger")).toBe("Straw");
		expect([...zoo.seen.keys()].sort()).toEqual(written.sort());
		expect(zoo.watches).toBeGreaterThan(5);
		end.abort();
		dev.kill("SIGINT");
		expect(await dev.ended).toBe(0);
		await watching.catch(() => {});
	});
});
