import { type Logger, silentLogger } from "@plinth/runtime";

/** A logger that collects the errors with which passes of controllers have failed. */
export function collectFailures(into: unknown[]): Logger {
	return {
		...silentLogger,
		warn: ({ err }, message) => {
			if (message === "reconcile failed") {
				into.push(err);
			}
		},
	};
}
