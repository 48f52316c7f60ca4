import { expect, it } from "vitest";
import { readFailedTasks } from "../../../scripts/failed-tasks.ts";
import { projectWith, run } from "./project.fixture.ts";

it("names the tasks that did not exit with 0 and what they printed, as turbo's summary of a run has them", () => {
	const folder = projectWith({
		"package.json":
			'{ "name": "root", "packageManager": "npm@10.0.0", "workspaces": ["packages/*"] }',
		"turbo.json": '{ "tasks": { "test": {}, "uncached#test": { "cache": false } } }',
		"packages/passes/package.json": '{ "name": "passes", "scripts": { "test": "exit 0" } }',
		"packages/fails/package.json":
			'{ "name": "fails", "scripts": { "test": "echo broken; exit 3" } }',
		"packages/uncached/package.json":
			'{ "name": "uncached", "scripts": { "test": "echo broken; exit 4" } }',
		"packages/none/package.json": '{ "name": "none" }',
	});
	const { status } = run("turbo", ["run", "test", "--continue", "--summarize"], folder);
	expect(status).not.toBe(0);
	const failed = readFailedTasks(folder).toSorted((a, b) => a.name.localeCompare(b.name));
	expect(failed).toEqual([
		{
			name: "fails#test",
			directory: "packages/fails",
			exitCode: 3,
			output: expect.stringMatching(/^broken$/m),
		},
		// Turbo keeps no output of it.
		{ name: "uncached#test", directory: "packages/uncached", exitCode: 4, output: "" },
	]);
});
