import { join } from "node:path";
import { Command } from "commander";
import { expect, it, onTestFinished } from "vitest";
import { type TemporaryProject, temporaryProject } from "../project/project.fixture.ts";
import { addGenerate } from "./command.ts";

/** Runs a command line in a folder of the project. */
async function plinth(project: TemporaryProject, folder: string, ...args: readonly string[]) {
	const before = process.cwd();
	onTestFinished(() => process.chdir(before));
	process.chdir(join(project.root, folder));
	let out = "";
	let err = "";
	let exitCode: number | undefined;
	const io = {
		out: (text: string) => {
			out += text;
		},
		err: (text: string) => {
			err += text;
		},
	};
	const program = new Command("plinth").exitOverride().option("--server <url>", "address");
	program.configureHelp({ showGlobalOptions: true });
	program.configureOutput({ writeOut: io.out, writeErr: io.err });
	addGenerate(program, async (work) => {
		exitCode = await work({ io });
	});
	await program.parseAsync(["generate", ...args], { from: "user" }).catch(() => {});
	process.chdir(before);
	return { out, err, exitCode };
}

it("prints what it has written, and what to do next", async () => {
	const project = await temporaryProject();
	const args = ["type", "Zone", "--references", "Project:block", "--field", "size:uint32"];
	expect(await plinth(project, ".", ...args)).toEqual({
		exitCode: 0,
		err: "",
		out: `created proto/iot/v1/zone.proto
created src/types/zone.ts
created resources/zone.yaml
changed src/module.ts

Next:
  1. give Zone its fields: proto/iot/v1/zone.proto
  2. npm run generate (npm run dev does it by itself)
  3. npx plinth apply -f resources/zone.yaml
`,
	});
	const controller = ["controller", "ZonePlanner", "--manages", "Zone", "--watches", "Project"];
	expect(await plinth(project, "src/types", ...controller)).toEqual({
		exitCode: 0,
		err: "",
		out: `in ../..:
created src/controllers/zone-planner.ts
created src/controllers/zone-planner.test.ts
changed src/module.ts

Next:
  1. npm test
  2. write down what should be true of zones: src/controllers/zone-planner.ts
  3. npm run dev
`,
	});
});

it("prints the files in a dry run", async () => {
	const project = await temporaryProject();
	const { out, exitCode } = await plinth(project, ".", "type", "Zone", "--dry-run");
	expect(exitCode).toBe(0);
	expect(out).toContain("would create proto/iot/v1/zone.proto\n");
	expect(out).toContain("\n--- src/types/zone.ts\nimport { defineType }");
	expect(out).toContain(`
--- src/module.ts
import { Zone } from "./types/zone.ts";
types: [..., Zone]
`);
});

it("prints the lines for a module that it can't edit", async () => {
	const project = await temporaryProject({ "src/module.ts": "export default {};\n" });
	const { out } = await plinth(project, ".", "type", "Zone");
	expect(out).toContain(`
src/module.ts does not call defineModule with lists that can be extended. Add this to it:
  import { Zone } from "./types/zone.ts";
  types: [..., Zone]

Next:
`);
});

it("prints a refusal as one line", async () => {
	const project = await temporaryProject();
	expect(await plinth(project, ".", "type", "Project")).toEqual({
		exitCode: 2,
		out: "",
		err: "plinth: proto/iot/v1/project.proto defines iot.v1.Project already\n",
	});
});

it("explains everything in its help", async () => {
	const project = await temporaryProject();
	const { out } = await plinth(project, ".", "type", "--help");
	expect(out).toContain("--references <type:rule>");
	expect(out).toContain("plinth generate type Zone --references Project:block");
	expect(out).not.toMatch(/--server|default: \[\]/);
	expect((await plinth(project, ".", "controller", "--help")).out).toContain("--manages <type>");
});
