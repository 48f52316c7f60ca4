import type { Command } from "commander";
import type { DevIo } from "./dev-io.ts";
import type { DevFlags } from "./project/dev-options.ts";

/** Runs a command, which returns its exit code. */
export type RunDevCommand = (
	work: (session: { readonly io: DevIo }) => Promise<0 | 1 | 2>,
) => Promise<void>;

/** Adds `plinth dev` to a program. What it needs is loaded when it is run. */
export function addDev(program: Command, run: RunDevCommand): void {
	program
		.command("dev")
		.description("run the server of a project, and restart it when its code changes")
		.argument("[server-flags...]", "after --: further flags of plinth-server")
		.option("--module <file>", "module of the project", "src/module.ts")
		.option("--proto <folder>", "folder with the protos of the project", "proto")
		.option("--listen <host:port>", "address to serve on (PLINTH_LISTEN, default: 127.0.0.1:7575)")
		.option(
			"--data-dir <folder>",
			"folder that keeps the data (PLINTH_DATA_DIR, default: .plinth/data)",
		)
		.option("--no-generate", "don't run buf generate when protos change")
		.option("--no-check", "don't check types with tsc")
		.addHelpText(
			"after",
			`
Protos, and the code that the server has imported, are watched. After a change
the code is generated if protos have changed, and a new server is started. The
old one serves until the new code is loaded; if it can't be, the old one stays.
Data is kept, and connections wait until the new server is ready.`,
		)
		.action((serverFlags: readonly string[], flags: DevFlags) =>
			run(async ({ io }) => {
				const { runDevCommand } = await import("./run-dev-command.ts");
				return runDevCommand(flags, serverFlags, io);
			}),
		);
}

/** Adds `plinth generate code` to `plinth generate`. */
export function addGenerateCode(generate: Command, run: RunDevCommand): void {
	generate
		.command("code")
		.description("generate the code of the project's protos, as buf.gen.yaml says")
		.addHelpText(
			"after",
			`
Does what "buf generate" does, but the generated files are complete at all times:
only those that differ are replaced. Hence servers, tests and compilers can read
them meanwhile. Waits while another process, such as plinth dev, generates code
of the same project.`,
		)
		.action(() =>
			run(async ({ io }) => {
				const { runGenerateCode } = await import("./run-generate-code.ts");
				return runGenerateCode(io);
			}),
		);
}
