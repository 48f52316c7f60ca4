import { expect, it } from "vitest";
import { parseCommandLine } from "./configuration.ts";
import { didYouMean } from "./did-you-mean.ts";
import { allSettings } from "./settings.ts";

it.each([
	["--limits-watches-per-token", "did you mean --limits-streams-per-subject?"],
	["--limits-watches-per-token=5", "did you mean --limits-streams-per-subject?"],
	["--lisen", "did you mean --listen?"],
	["--data_dir", "did you mean --data-dir?"],
	["--modules", "did you mean --module?"],
	["--hepl", "did you mean --help?"],
	["--limits-stop-timeuot", "did you mean --limits-stop-timeout?"],
	["--etcd-servers", "did you mean --etcd-endpoints?"],
	["--port=80", "did you mean --listen?"],
	["--quite-different", "see --help for those that exist"],
	["-h", "did you mean --help?"],
	["-v", "see --help for those that exist"],
])("an unknown flag is reported with the one that was meant: %s", (flag, expected) => {
	const [name] = flag.split("=");
	expect(() => parseCommandLine([flag])).toThrow(`unknown flag ${name}: ${expected}`);
});

it.each([
	[["bakcup", "file"], "unknown command bakcup: did you mean backup?"],
	[["new_token"], "unknown command new_token: did you mean new-token?"],
	[["new-token", "a"], "new-token has unexpected arguments, see --help"],
	[["serve"], 'unexpected argument "serve": all other arguments are flags'],
])("an unknown command is reported: %j", (args, expected) => {
	expect(() => parseCommandLine(args)).toThrow(expected);
});

it("suggests only settings that exist", () => {
	for (const { flag, variable, path } of allSettings) {
		expect(didYouMean("flag", flag)).toBe(flag);
		expect(didYouMean("variable", variable)).toBe(variable);
		expect(didYouMean("path", path)).toBe(path);
	}
});
