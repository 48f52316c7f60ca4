import { commandHelp } from "../configuration/command-help.ts";
import { type Configuration, parseCommandLine } from "../configuration/configuration.ts";
import { help } from "../configuration/help.ts";
import { FileError } from "../configuration/located-yaml.ts";
import { UsageError } from "../configuration/usage-error.ts";
import { serverVersion } from "../server-version.ts";
import { exitCodes } from "./exit-codes.ts";

/** What a command uses of its process. */
export interface CommandContext {
	readonly environment: Readonly<Record<string, string | undefined>>;
	readonly stdout: TextOutput;
	readonly stderr: TextOutput;
	/** Runs a server until it stops. Resolves to the exit code. */
	readonly serve: (configuration: Configuration) => Promise<number>;
}

/** A stream of text, such as the standard output. */
export interface TextOutput {
	write(text: string): unknown;
}

/**
 * Runs a command line of `plinth-server`, and explains on the standard error why it failed.
 *
 * @param args the arguments of the program.
 * @returns the exit code.
 */
export async function runCommand(
	args: readonly string[],
	context: CommandContext,
): Promise<number> {
	try {
		const outcome = await outcomeOf(args, context);
		if (typeof outcome === "number") {
			return outcome;
		}
		context.stdout.write(outcome);
		return exitCodes.stopped;
	} catch (failure) {
		const isUsage = failure instanceof UsageError || failure instanceof FileError;
		const text = isUsage
			? `plinth-server: ${failure.message}`
			: (await import("./explain-failure.ts")).explainFailure(failure);
		context.stderr.write(`${text}\n`);
		return isUsage ? exitCodes.usage : exitCodes.failed;
	}
}

/** The exit code of a server, or the output of another command. */
async function outcomeOf(
	args: readonly string[],
	{ environment, serve, stderr }: CommandContext,
): Promise<string | number> {
	const [first, second] = args;
	if (first === "agent") {
		const { agentHelp, parseAgentCommandLine } = await import("../agent/agent-configuration.ts");
		if (args.includes("--help")) {
			return agentHelp;
		}
		const configuration = parseAgentCommandLine(args.slice(1), environment);
		const { runAgent } = await import("../agent/run-agent.ts");
		return runAgent(configuration);
	}
	if (args.includes("--help")) {
		return commandHelp(first);
	}
	if (first === "new-token" && args.length === 1) {
		const { newToken } = await import("../security/new-token.ts");
		const { token, sha256 } = newToken();
		stderr.write("plinth-server: the token is for the caller, the hash for the access file\n");
		return `token   ${token}\nsha256  ${sha256}\n`;
	}
	if (args.includes("--version") || (first === "version" && args.length === 1)) {
		return `${serverVersion()}\n`;
	}
	const words = wordsOf(first);
	const command = parseCommandLine(args.slice(words), environment);
	if (command.kind === "help") {
		return help;
	}
	const { configuration } = command;
	if (words === 0) {
		return serve(configuration);
	}
	if (first === "backup" || first === "restore") {
		const { copyStorage } = await import("../backup/backup-command.ts");
		const { createLogger } = await import("../logging/pino-logger.ts");
		return copyStorage(
			first,
			second,
			configuration,
			createLogger({ level: configuration.logLevel }),
		);
	}
	const { declareEtcdRestored } = await import("../backup/etcd-restored.ts");
	return declareEtcdRestored(configuration);
}

/** The number of arguments before the flags: the command and its file. A server has none. */
function wordsOf(command: string | undefined): number {
	switch (command) {
		case "backup":
		case "restore":
			return 2;
		case "etcd-restored":
			return 1;
		default:
			return 0;
	}
}
