import { exitCodes } from "../exit-codes.ts";
import { ownVersion } from "../own-version.ts";
import type { AddCommand } from "./runner.ts";

/** `plinth version`: prints what `plinth --version` prints. */
export const addVersion: AddCommand = (program, run) => {
	program
		.command("version")
		.description("print the version of plinth")
		.action(() =>
			run(async ({ io }) => {
				io.out(`${ownVersion}\n`);
				return exitCodes.ok;
			}),
		);
};
