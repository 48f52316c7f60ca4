import { readFileSync } from "node:fs";
import { relative } from "node:path";
import { StandardOutput } from "@plinth/runtime/standard-output";
import { createProject, type NewProject, ScaffoldError } from "@plinth/scaffold";
import { type Arguments, help, parseArguments, UsageError } from "./arguments.ts";
import { runProgram } from "./run-program.ts";

const exitCodes = { ok: 0, failed: 1, usage: 2 } as const;

/** Runs the command line, and returns its exit code. It finishes although its output can't be written, and then fails. */
export async function run(args: readonly string[]): Promise<number> {
	let outputCode: number = exitCodes.ok;
	const output = new StandardOutput(({ reason, isUnread }) => {
		if (!isUnread) {
			console.error(`create-plinth: can't write to standard output: ${reason}`);
			outputCode = exitCodes.failed;
		}
	});
	const code = await runCommand(args, (line) => output.write(`${line}\n`));
	await output.flush();
	return code || outputCode;
}

/** Prints a line, or several. */
type Print = (text: string) => void;

async function runCommand(args: readonly string[], print: Print): Promise<number> {
	try {
		const parsed = parseArguments(args, process.env.npm_config_user_agent);
		switch (parsed.kind) {
			case "help":
				print(help);
				return exitCodes.ok;
			case "version":
				print(ownVersion());
				return exitCodes.ok;
			case "create":
				return (await uninterrupted((signal) => create(parsed, print, signal)))
					? exitCodes.ok
					: exitCodes.failed;
		}
	} catch (error) {
		if (error instanceof UsageError) {
			console.error(`create-plinth: ${error.message} (--help lists all flags)`);
			return exitCodes.usage;
		}
		if (error instanceof ScaffoldError) {
			console.error(`create-plinth: ${error.message}`);
			return exitCodes.failed;
		}
		throw error;
	}
}

type Creation = Extract<Arguments, { readonly kind: "create" }>;

/** Lets an interrupt abort the signal, and end the programs that run, but not this one: it has to report. */
async function uninterrupted(work: (signal: AbortSignal) => Promise<boolean>): Promise<boolean> {
	const interrupt = new AbortController();
	const abort = () => interrupt.abort();
	process.on("SIGINT", abort);
	try {
		return await work(interrupt.signal);
	} finally {
		process.off("SIGINT", abort);
	}
}

/** Returns whether the project is complete. */
async function create(
	{ folder, install, git, packageManager }: Creation,
	print: Print,
	signal: AbortSignal,
): Promise<boolean> {
	const project = await createProject({ folder, packageManager, signal });
	print(`${project.name}: ${project.files.length} files in ${project.folder}`);
	if (git && (await createRepository(project.folder, signal))) {
		print("created a git repository");
	}
	const where = relative(process.cwd(), project.folder);
	const enter = where === "" ? [] : [`cd ${/^[\w./\\-]+$/.test(where) ? where : `"${where}"`}`];
	const installCommands = [`${packageManager} install`, `${packageManager} run generate`];
	if (install && !(await installDependencies(project, packageManager, print, signal))) {
		console.error(
			`\ncreate-plinth: the project was created, but not set up completely. To finish:\n${listed([...enter, ...installCommands])}\nTo start over, delete ${project.folder}`,
		);
		return false;
	}
	const execute = packageManager === "npm" ? "npx" : `${packageManager} exec`;
	print(
		`\nStart the server:\n${listed([...enter, ...(install ? [] : installCommands), `${packageManager} run dev`])}\n\nIn a second terminal, declare a site, and wait until the controller has reached it:\n${listed([...enter, `${execute} plinth apply -f resources/site.yaml`, `${execute} plinth wait Site plinth --for=condition=Reachable`])}\n\nREADME.md has all commands, and what each file is for.`,
	);
	return true;
}

/** Returns whether it has created one: not inside of another one, nor without git. */
async function createRepository(folder: string, signal: AbortSignal): Promise<boolean> {
	const git = (...args: readonly string[]) => runProgram("git", args, { folder, signal });
	const inside = await git("rev-parse", "--is-inside-work-tree");
	return !inside.succeeded && (await git("init", "--quiet")).succeeded;
}

/** Installs dependencies, and generates code from the protos. Returns whether both succeeded. */
async function installDependencies(
	{ folder }: NewProject,
	packageManager: Creation["packageManager"],
	print: Print,
	signal: AbortSignal,
): Promise<boolean> {
	print(`installing dependencies with ${packageManager}…`);
	const install = packageManager === "npm" ? ["install", "--no-audit", "--no-fund"] : ["install"];
	const installed = await runProgram(packageManager, install, { folder, signal, show: true });
	if (!installed.succeeded) {
		return false;
	}
	const generated = await runProgram(packageManager, ["run", "generate"], { folder, signal });
	print(generated.succeeded ? "generated src/gen from the protos" : generated.output);
	return generated.succeeded;
}

function listed(commands: readonly string[]): string {
	return commands.map((command) => `  ${command}`).join("\n");
}

function ownVersion(): string {
	const manifest: { readonly version: string } = JSON.parse(
		readFileSync(new URL("../package.json", import.meta.url), "utf8"),
	);
	return manifest.version;
}
