import { runDev } from "./dev.ts";
import type { DevIo } from "./dev-io.ts";
import { DevError, type DevFlags } from "./project/dev-options.ts";
import { Terminal } from "./report/terminal.ts";

/** Runs `plinth dev` in the working directory until it is interrupted. Returns the exit code. */
export async function runDevCommand(
	flags: DevFlags,
	serverFlags: readonly string[],
	{ out, err, color, env, clock, signal }: DevIo,
): Promise<0 | 2> {
	const folder = process.cwd();
	const terminal = new Terminal({ write: out, color, folder });
	const environment = { ...env, ...(color && { FORCE_COLOR: env.FORCE_COLOR ?? "1" }) };
	try {
		await runDev(flags, {
			...{ environment, folder, serverFlags, terminal, clock, signal },
		});
		return 0;
	} catch (failure) {
		if (failure instanceof DevError) {
			err(`plinth: ${failure.message}\n`);
			return 2;
		}
		throw failure;
	}
}
