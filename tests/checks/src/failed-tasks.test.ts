import { expect, it } from "vitest";
import { readFailedTasks } from "../../../scripts/failed-tasks.ts";
import { projectWith, run } from "./project.fixture.ts";

it("names the tasks that did not exit with 0, as turbo's summary of a run has them", () => {
	const folder = projectWith({
		"package.json":
			'{ "name": "root", "packageManager": "npm@10.0.0", "workspaces": ["packages/*"] }',
		"turbo.json": '{ "tasks": { "test": { "cache": false } } }',
		"packages/passes/package.json": '{ "name": "passes", "scripts": { "test": "exit 0" } }',
		"packages/fails/package.json": '{ "name": "fails", "scripts": { "test": "exit 3" } }',
		"packages/none/package.json": '{ "name": "none" }',
	});
	const { status } = run("turbo", ["run", "test", "--continue", "--summarize"], folder);
	expect(status).not.toBe(0);
	expect(readFailedTasks(folder)).toEqual([
		{ name: "fails#test", directory: "packages/fails", exitCode: 3 },
	]);
});
