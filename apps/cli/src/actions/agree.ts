import { usageFailure } from "../failure.ts";
import type { Io } from "../io.ts";

/** The flags of a command that asks before it deletes or changes much. */
export interface AgreementFlags {
	readonly yes?: boolean;
	readonly dryRun?: "server";
}

/**
 * Checks that somebody can be asked, or need not be: before resources are read.
 *
 * @param action - what is asked about, as in "delete resources". Names on the command line are checked first.
 * @throws Failure if nobody can be asked.
 */
export function assertMayAsk(io: Io, { yes, dryRun }: AgreementFlags, action: string): void {
	if (!(yes || dryRun || io.isInteractive)) {
		throw usageFailure(
			`can't ask whether to ${action}: this is not a terminal. Preview it with --dry-run=server, then pass --yes`,
		);
	}
}

/** Asks a question, unless `--yes` was given. Returns whether somebody agrees. */
export async function agrees(io: Io, { yes }: AgreementFlags, question: string): Promise<boolean> {
	return yes === true || /^\s*y(es)?\s*$/i.test(await io.ask(`${question} [y/N] `));
}
