import type { ExitCode } from "./exit-codes.ts";
import { exitCodes } from "./exit-codes.ts";

/** The failure of a command. The message is for people, and says what to do. */
export class Failure extends Error {
	override readonly name = "Failure";
	readonly exitCode: ExitCode;

	constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
		super(message, options);
		this.exitCode = exitCode;
	}
}

/** The failure for invalid flags, types, files or configuration. */
export function usageFailure(message: string, options?: ErrorOptions): Failure {
	return new Failure(exitCodes.usage, message, options);
}
