import { expect, it } from "vitest";
import { root, run } from "./project.fixture.ts";

interface DryRun {
	readonly tasks: readonly {
		readonly taskId: string;
		readonly dependencies: readonly string[];
		readonly inputs: Readonly<Record<string, string>>;
	}[];
}

const filters = ["--filter=@plinth/server", "--filter=@plinth/runtime"];
const { stdout } = run("turbo", ["run", "test", "--dry=json", ...filters], root);
const { tasks }: DryRun = JSON.parse(stdout);

function task(name: string) {
	const found = tasks.find(({ taskId }) => taskId === name);
	expect(found, name).toBeDefined();
	return { dependencies: found?.dependencies ?? [], inputs: Object.keys(found?.inputs ?? {}) };
}

it("starts tests that take long first: others wait until those are queued", () => {
	const long = task("@plinth/server#test").dependencies;
	expect(long).toContain("//#test:prepare");
	expect(long).not.toContain("//#test:long-queued");
	expect(task("@plinth/runtime#test").dependencies).toContain("//#test:long-queued");
});

it.each(["//#test:prepare", "//#test:long-queued"])(
	"%s: a change of code does not change its hash, on which those of all tests depend",
	(name) => {
		expect(task(name).inputs.sort()).toEqual(["package.json", "turbo.json"]);
	},
);
