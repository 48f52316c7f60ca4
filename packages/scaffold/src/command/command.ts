import type { Command } from "commander";
import type { Generated } from "../project/generate.ts";
import { ScaffoldError } from "../scaffold-error.ts";
import { report } from "./report.ts";

/** The output of a command. */
interface Output {
	readonly out: (text: string) => void;
	readonly err: (text: string) => void;
}

/** The exit codes of `plinth`, as far as these commands use them: success, and flags or files that are wrong. */
type ExitCode = 0 | 2;

/** Runs a command, as the command line of `@plinth/cli` does for its own. */
type Run = (work: (session: { readonly io: Output }) => Promise<ExitCode>) => Promise<void>;

interface TypeFlags {
	readonly scope: string;
	readonly references?: readonly string[];
	readonly field?: readonly string[];
	readonly package?: string;
	readonly dryRun?: boolean;
}

interface ControllerFlags {
	readonly manages: string;
	readonly watches?: readonly string[];
	readonly writes?: string;
	readonly dryRun?: boolean;
}

/** Adds `plinth generate` to a program. Returns it, for further commands below it. */
export function addGenerate(program: Command, run: Run): Command {
	const generate = program
		.command("generate")
		.description("add a type or a controller to the project of the current folder");
	// The other flags of the program choose a server, which these commands do not call.
	generate.configureHelp({ ...generate.configureHelp(), showGlobalOptions: false });
	addGenerateType(generate, run);
	addGenerateController(generate, run);
	return generate;
}

function addGenerateType(generate: Command, run: Run): void {
	generate
		.command("type <name>")
		.description("add a resource type: its proto, its definition, and a resource to try it with")
		.option(
			"--scope <scope>",
			"where its resources live: namespace, partition or cluster",
			"namespace",
		)
		.option(
			"--references <type:rule>",
			"field that references a type, with block, cascade or unset: what to do when the target is deleted (repeatable)",
			append,
		)
		.option("--field <name:type>", "field with a value, as in capacity:uint32 (repeatable)", append)
		.option("--package <package>", "Protobuf package, as in iot.v1 (default: the project's)")
		.option("--dry-run", "print the files instead of writing them")
		.addHelpText("after", typeHelp)
		.action((name: string, { field: fields = [], ...flags }: TypeFlags) =>
			run(async ({ io }) => {
				const { addType } = await import("../type/add-type.ts");
				return await printed(io, (from) => addType({ ...flags, from, name, fields }));
			}),
		);
}

function addGenerateController(generate: Command, run: Run): void {
	generate
		.command("controller <name>")
		.description("add a controller, and a test of it with a fake clock")
		.requiredOption("--manages <type>", "type whose resources it brings to their desired state")
		.option("--watches <type>", "type whose changes concern managed resources (repeatable)", append)
		.option(
			"--writes <type>",
			"type that it writes: one resource for each managed one, which owns it",
		)
		.option("--dry-run", "print the files instead of writing them")
		.addHelpText("after", controllerHelp)
		.action((name: string, flags: ControllerFlags) =>
			run(async ({ io }) => {
				const { addController } = await import("../controller/add-controller.ts");
				return await printed(io, (from) => addController({ ...flags, from, name }));
			}),
		);
}

async function printed(
	io: Output,
	work: (folder: string) => Promise<Generated>,
): Promise<ExitCode> {
	const folder = process.cwd();
	try {
		io.out(report(await work(folder), folder));
		return 0;
	} catch (error) {
		if (error instanceof ScaffoldError) {
			io.err(`plinth: ${error.message}\n`);
			return 2;
		}
		throw error;
	}
}

function append(value: string, before: readonly string[] = []): readonly string[] {
	return [...before, value];
}

const typeHelp = `
Writes proto/<package>/<name>.proto, src/types/<name>.ts and resources/<name>.yaml,
and adds the type to src/module.ts. Never overwrites a file.

A reference is Type:rule, or field=Type:rule to give the field another name than
the type. The rule is block (default: the target can't be deleted), cascade (the
resource is deleted too) or unset (the field is cleared). Types of fields: string,
bool, int32, int64, uint32, uint64, float, double, bytes, duration, timestamp.

Examples:
  plinth generate type Zone --references Project:block --field capacity:uint32
  plinth generate type Device --references Zone:cascade,backup=Zone:unset
  plinth generate type Region --scope cluster`;

const controllerHelp = `
Writes src/controllers/<name>.ts and its test, and adds the controller to
src/module.ts. Never overwrites a file. If the managed type references a watched
one, a change of a target reconciles the resources that reference it.

Examples:
  plinth generate controller ZonePlanner --manages Zone --watches Project
  plinth generate controller Planner --manages Zone --writes ZonePlan`;
