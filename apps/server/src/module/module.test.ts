import { fileURLToPath } from "node:url";
// Test data, which packages do not export.
import { Thing, thingReferencing } from "@plinth/db-constraint/testing";
import { Partition } from "@plinth/resource";
import { liveType } from "@plinth/resource-service/testing";
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
		["", /is not a file/],
		["no-default.js", /has no default export: write export default defineModule/],
		["no-module.ts", /is not what defineModule\(\{ … \}\) of @plinth\/server\/module returns/],
		["throws.js", /can't be imported: no music today/],
	])("refuses %j with the reason", async (file, message) => {
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

	it("refuses types whose rules and table paths are not valid, and names all of them", () => {
		const wrong = liveType({
			text: { cel: [{ id: "short", expression: "this.size(" }] },
			count: { type: { case: "string", value: { minLen: 1n } } },
			columns: ["text", "txet"],
		});
		expect(() => defineModule({ name: "live", types: [wrong] })).toThrow(
			new RegExp(
				[
					"^module live: options of its types are not valid:",
					"- type live\\.v1\\.Thing: field acme\\.live\\.v1\\.Thing\\.text: failed to compile short: .*",
					'- type live\\.v1\\.Thing: field acme\\.live\\.v1\\.Thing\\.count: expected rule "int32", got "string"',
					'- type live\\.v1\\.Thing: \\(plinth\\.type\\.v1\\.table\\) path "txet": acme\\.live\\.v1\\.Thing has no field "txet"$',
				].join("\n"),
			),
		);
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

	it("refuses references to types that no module registers, before anything is opened", () => {
		const things = defineModule({ name: "things", types: [Thing] });
		expect(registerTypes([Partition], [things]).all()).toContain(Thing);
		const lost = thingReferencing(new Map([[1, "alpha.v1.Thong"]]));
		const module = defineModule({ name: "lost", types: [lost] });
		const refused = () => registerTypes([Partition], [module]);
		expect(refused).toThrow(ModuleError);
		expect(refused).toThrow(
			"references of the types are not valid:\n- type alpha.v1.Thing: field acme.alpha.v1.Thing.needs: references alpha.v1.Thong, which is not registered",
		);
	});

	it("refuses a module that is there already", () => {
		expect(() => registerTypes([], [musicModule(), musicModule()])).toThrow(
			"two modules are named music",
		);
	});
});
