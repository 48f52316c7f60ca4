import { nearest } from "@plinth/documents/suggest";
import { UnknownTypeError } from "@plinth/documents/unknown-type-error";
import { Command, CommanderError, Help, type HelpContext } from "commander";
import { addApi } from "./commands/api.ts";
import { addApply } from "./commands/apply.ts";
import { addBackup } from "./commands/backup.ts";
import { addCompletion } from "./commands/completion.ts";
import { addConsole } from "./commands/console.ts";
import { addContext } from "./commands/context.ts";
import { addControllers } from "./commands/controllers.ts";
import { addDelete } from "./commands/delete.ts";
import { addDeployments } from "./commands/deployments.ts";
import { addDescribe } from "./commands/describe.ts";
import { addDiff } from "./commands/diff.ts";
import { addEdit } from "./commands/edit.ts";
import { addEvents } from "./commands/events.ts";
import { addExplain } from "./commands/explain.ts";
import { addGet, addList } from "./commands/get.ts";
import { addHistory } from "./commands/history.ts";
import { addPeering } from "./commands/peering.ts";
import { addRefs } from "./commands/refs.ts";
import type { AddCommand, Runner } from "./commands/runner.ts";
import { addStatus } from "./commands/status.ts";
import { addTop } from "./commands/top.ts";
import { addTypes } from "./commands/types.ts";
import { addVersion } from "./commands/version.ts";
import { addWait } from "./commands/wait.ts";
import { addWatch } from "./commands/watch.ts";
import type { GlobalFlags } from "./configuration/settings.ts";
import { type ExitCode, exitCodes } from "./exit-codes.ts";
import { Failure } from "./failure.ts";
import type { Io } from "./io.ts";
import { printable } from "./output/printable.ts";
import { ownVersion } from "./own-version.ts";
import { explainUsage } from "./usage-error.ts";

/** All commands, in the order of the help text. Add a new command here. */
const commands: readonly AddCommand[] = [
	...[addGet, addList, addWatch, addDescribe, addHistory, addEvents, addStatus],
	...[addApply, addDiff, addEdit, addDelete, addWait],
	...[addRefs, addTypes, addExplain, addTop, addControllers, addDeployments, addPeering],
	...[addBackup, addApi, addConsole, addContext, addCompletion, addVersion],
];

/**
 * Runs one command line, without the names of Node and the program, and returns its exit code.
 *
 * @param furtherCommands - commands beside those of this package.
 */
export async function runCommandLine(
	args: readonly string[],
	io: Io,
	furtherCommands: readonly AddCommand[] = [],
): Promise<ExitCode> {
	let exitCode: ExitCode = exitCodes.ok;
	const run: Runner = async (work, { finishesUnread = false } = {}) => {
		if (finishesUnread) {
			io.finishUnread?.();
		}
		const { Session } = await import("./session.ts");
		using session = new Session(io, program.opts<GlobalFlags>());
		exitCode = await work(session);
	};
	const program = createProgram(io, run, furtherCommands);
	try {
		await program.parseAsync([...args], { from: "user" });
		return exitCode;
	} catch (error) {
		if (io.signal.aborted) {
			return exitCodes.interrupted;
		}
		if (error instanceof CommanderError) {
			return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
		}
		if (error instanceof Failure || error instanceof UnknownTypeError) {
			io.err(`plinth: ${printable(error.message)}\n`);
			return error instanceof Failure ? error.exitCode : exitCodes.usage;
		}
		io.err(`plinth: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
		return exitCodes.failed;
	}
}

/** The command line as a program of commander. */
export function createProgram(
	io: Io,
	run: Runner,
	furtherCommands: readonly AddCommand[] = [],
): Command {
	const program = new Command("plinth")
		.description("command-line client of Plinth")
		.version(ownVersion, "--version", "print the version of plinth")
		.exitOverride()
		.configureOutput({
			writeOut: (text) => io.out(text),
			writeErr: (text) => io.err(text),
			getOutHelpWidth: () => io.width ?? 80,
			getErrHelpWidth: () => io.width ?? 80,
		})
		.configureHelp({
			showGlobalOptions: true,
			// What commander calls options is called flags everywhere else.
			styleTitle: (title) => title.replace("Options:", "Flags:"),
			styleUsage: (usage) => usage.replace("[options]", "[flags]"),
			subcommandTerm: (command) =>
				new Help().subcommandTerm(command).replace("[options]", "[flags]"),
		})
		.showHelpAfterError("(run it with --help for usage)")
		.option("--context <name>", "context of the configuration file to use (PLINTH_CONTEXT)")
		.option(
			"--server <url>",
			"address of the server (PLINTH_SERVER, default: http://127.0.0.1:7575)",
		)
		.option("-p, --partition <name>", 'partition (PLINTH_PARTITION, default: "default")')
		.option("-n, --namespace <name>", 'namespace (PLINTH_NAMESPACE, default: "default")')
		.option("--token-file <file>", "file that contains the token")
		.option("--token <token>", "token (PLINTH_TOKEN); other users of the machine can see the flag")
		.option("--ca-file <file>", "trusted CA certificates, in PEM (PLINTH_CA_FILE)")
		.option("--certificate-file <file>", "client certificate, in PEM (PLINTH_CERTIFICATE_FILE)")
		.option("--key-file <file>", "key of the client certificate (PLINTH_KEY_FILE)")
		.option(
			"--request-timeout <time>",
			"timeout of each call, such as 500ms, 30s or 2m; 0 for none",
			"30s",
		)
		.option("--config <file>", "configuration file (PLINTH_CONFIG)")
		.addHelpText(
			"after",
			`
A resource is given as TYPE NAME or as TYPE/NAME. A type is given by its full
name, such as catalog.v1.Workload, or by a shorter one if that is unambiguous,
such as Workload. Several flags can also be set by environment variables, which
are in parentheses, or by a context.`,
		);
	for (const add of [...commands, ...furtherCommands]) {
		add(program, run);
	}
	explainErrors(program);
	return program;
}

function explainErrors(command: Command): void {
	explainUnknownHelp(command);
	command.configureOutput({
		outputError: (text, write) => write(explainUsage(text, command)),
	});
	for (const each of command.commands) {
		explainErrors(each);
	}
}

/** Lets `help NAME` say that there is no such command. Commander prints the help of the parent as an error instead. */
function explainUnknownHelp(command: Command): void {
	const help: (context?: HelpContext) => never = command.help.bind(command);
	const explained = (context?: HelpContext): never => {
		const [first, name] = command.args;
		const names = command.commands.map((each) => each.name());
		if (first === "help" && name !== undefined && ![...names, "help"].includes(name)) {
			const near = nearest(name, names);
			const hint = near === undefined ? "" : `\n(Did you mean ${near}?)`;
			command.error(`error: unknown command '${name}'${hint}`);
		}
		return help(context);
	};
	command.help = explained as Command["help"];
}
