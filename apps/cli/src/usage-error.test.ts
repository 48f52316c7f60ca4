import { describe, expect, it } from "vitest";
import { exitCodes } from "./exit-codes.ts";
import { runPlinth } from "./run-plinth.fixture.ts";

/** The first line of the error. */
async function usageError(...args: readonly string[]): Promise<string> {
	const { code, out, err } = await runPlinth(args);
	expect({ code, out }).toEqual({ code: exitCodes.usage, out: "" });
	const [message = "", ...more] = err.split("\n");
	expect(more).toEqual(["(run it with --help for usage)", ""]);
	return message;
}

describe("an unknown flag", () => {
	it.each([
		["misspelled", ["get", "film", "--namspace", "a"], "--namspace: did you mean --namespace?"],
		["misspelled, with a value", ["--sever=a", "types"], "--sever=a: did you mean --server?"],
		[
			"of a nested command",
			["context", "set", "a", "--tokn", "b"],
			"--tokn: did you mean --token?",
		],
		["of kubectl", ["types", "--kubeconfig", "a"], "--kubeconfig: did you mean --config?"],
		["of etcdctl", ["types", "--endpoints=a"], "--endpoints=a: did you mean --server?"],
		[
			"of another command",
			["get", "film", "--prefix", "a"],
			"--prefix: it is a flag of list, watch",
		],
		["unlike any other", ["types", "--quite-different"], "--quite-different"],
		["with one letter", ["types", "-x"], "-x"],
	])("is reported: %s", async (_, args, expected) => {
		expect(await usageError(...args)).toBe(`plinth: unknown flag ${expected}`);
	});
});

describe("another mistake in the command line", () => {
	it.each([
		[["gte"], "unknown command 'gte': did you mean get?"],
		[
			["dev"],
			"unknown command 'dev': it is a command of projects that depend on @plinth/plinth; run it in one, as npx plinth dev (npm create plinth@latest makes a project)",
		],
		[["completion", "tcsh"], 'invalid value "tcsh" for <shell>: must be one of bash, zsh, fish'],
		[["get"], "missing required argument 'type'"],
		[["apply"], "missing required flag -f, --filename <file...>"],
		[["wait", "film", "--for"], "--for <what> needs a value"],
		[
			["get", "film", "-o", "xml"],
			'invalid value "xml" for -o, --output <format>: must be one of table, yaml, json, name, wide',
		],
	])("is reported: %j", async (args, expected) => {
		expect(await usageError(...args)).toBe(`plinth: ${expected}`);
	});
});
