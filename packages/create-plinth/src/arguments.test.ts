import { describe, expect, it } from "vitest";
import { parseArguments, UsageError } from "./arguments.ts";

const npm = "npm/11.6.0 node/v26.9.0 linux x64 workspaces/false";
const pnpm = "pnpm/12.21.0 npm/? node/v26.9.0 linux x64";
const yarn = "yarn/4.5.0 npm/? node/v26.9.0 linux x64";

describe("the command line", () => {
	it("needs only a folder", () => {
		expect(parseArguments(["my-platform"], npm)).toEqual({
			kind: "create",
			folder: "my-platform",
			install: true,
			git: true,
			packageManager: "npm",
		});
	});

	it.each([
		[npm, "npm"],
		[pnpm, "pnpm"],
		[yarn, "npm"],
		[undefined, "npm"],
	])("run by %s, sets up the project for %s", (userAgent, packageManager) => {
		expect(parseArguments(["shop"], userAgent)).toMatchObject({ packageManager });
	});

	it("has options", () => {
		const args = ["shop", "--no-install", "--no-git", "--package-manager=npm"];
		expect(parseArguments(args, pnpm)).toEqual({
			kind: "create",
			folder: "shop",
			install: false,
			git: false,
			packageManager: "npm",
		});
		expect(parseArguments(["--help"], npm)).toEqual({ kind: "help" });
		expect(parseArguments(["-v"], npm)).toEqual({ kind: "version" });
	});

	it.each([
		[[], "name the folder to create, as in npm create plinth@latest my-platform"],
		[[""], "name the folder to create, as in npm create plinth@latest my-platform"],
		[["my", "platform"], "name one folder: there are 2, my, platform"],
		[["shop", "--no-instal"], "unknown flag --no-instal: did you mean --no-install?"],
		[["shop", "--no-git=yes"], "--no-git takes no value"],
		[["shop", "--help=yes"], "--help takes no value"],
		[["shop", "--package-manager", "--no-git"], "--package-manager needs a value"],
		[["shop", "--package-manager"], "--package-manager needs a value"],
		[
			["shop", "--package-manager", "yarn"],
			"a project can't be set up for the package manager yarn: choose npm or pnpm",
		],
	])("%j: %s", (args, message) => {
		expect(() => parseArguments(args, npm)).toThrow(new UsageError(message));
	});
});
