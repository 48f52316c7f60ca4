import type { ExitCode } from "./exit-codes.ts";
import { exitCodes } from "./exit-codes.ts";

/** A command did not do what it was asked. The message is for people, and says what to do. */
export class Failure extends Error {
	override readonly name = "Failure";
	readonly exitCode: ExitCode;

	constructor(exitCode: ExitCode, message: string, options?: ErrorOptions) {
		super(message, options);
		this.exitCode = exitCode;
	}
}

/** The caller gave something that can't be used: flags, names of types, files, configuration. */
export function usageFailure(message: string, options?: ErrorOptions): Failure {
	return new Failure(exitCodes.usage, message, options);
}
