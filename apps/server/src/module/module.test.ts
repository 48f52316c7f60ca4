import { fileURLToPath } from "node:url";
import { Partition } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Artist, musicModule } from "../../testdata/music.ts";
import { defineModule } from "./define-module.ts";
import { loadModule, loadModules, ModuleError } from "./load-module.ts";
import { registerTypes } from "./register-types.ts";

const folder = fileURLToPath(new URL("../../testdata/modules/", import.meta.url));

describe("loadModule", () => {
	it("imports the default export of a TypeScript file as it is", async () => {
		const module = await loadModule(`${folder}module.ts`);
		expect(module.name).toBe("music");
		expect(module.types).toEqual([Artist]);
	});

	it.each([
		["nowhere.ts", /module .*nowhere\.ts: no such file \(looked for \/.*nowhere\.ts\)/],
		["", /is no file/],
		["no-default.js", /has no default export: write export default defineModule/],
		["no-module.ts", /is not what defineModule\(\{ … \}\) of @plinth\/server\/module returns/],
		["throws.js", /can't be imported: no music today/],
	])("refuses %j and says why", async (file, message) => {
		const refused = loadModule(folder + file);
		await expect(refused).rejects.toThrow(ModuleError);
		await expect(refused).rejects.toThrow(message);
	});

	it("finds relative paths from the working directory", async () => {
		await expect(loadModules(["./nowhere.ts"])).rejects.toThrow(
			`looked for ${process.cwd()}/nowhere.ts`,
		);
	});
});

describe("defineModule", () => {
	it("refuses a module without a name", () => {
		expect(() => defineModule({ name: "" })).toThrow("a module needs a name");
	});
});

describe("registerTypes", () => {
	it("knows the types of the server and of all modules", () => {
		const keys = registerTypes([Partition], [musicModule()])
			.all()
			.map(({ key }) => key);
		expect(keys).toEqual(["music.v1.Artist", "tenancy.v1.Partition"]);
	});

	it("refuses a type that is there already, and names the module", () => {
		const again = defineModule({ name: "again", types: [Artist] });
		expect(() => registerTypes([], [musicModule(), again])).toThrow(
			"module again: resource type music.v1.Artist is registered already",
		);
	});

	it("refuses a module that is there already", () => {
		expect(() => registerTypes([], [musicModule(), musicModule()])).toThrow(
			"two modules are named music",
		);
	});
});
