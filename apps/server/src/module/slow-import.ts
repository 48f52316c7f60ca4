import type { Clock, Logger } from "@plinth/runtime";

/** After which time an import is reported, in milliseconds. Each pause after that is twice as long. */
const firstPauseMs = 10_000;
const maxPauseMs = 600_000;

/** What reports a slow import. */
export interface SlowImportReporter {
	readonly logger: Pick<Logger, "warn">;
	readonly clock: Clock;
}

/** Waits for the import of a module file, and logs that it does: an `await` at the top of a module may never end. */
export async function reportSlowImport<T>(
	importing: Promise<T>,
	file: string,
	{ logger, clock }: SlowImportReporter,
): Promise<T> {
	const startMs = clock.monotonic();
	const report = (pauseMs: number) =>
		clock.setTimer(pauseMs, () => {
			const seconds = Math.round((clock.monotonic() - startMs) / 1_000);
			logger.warn(
				{ module: file, seconds },
				"still importing the module: nothing is served until all that it awaits is done",
			);
			timer = report(Math.min(2 * pauseMs, maxPauseMs));
		});
	let timer = report(firstPauseMs);
	try {
		return await importing;
	} finally {
		timer.cancel();
	}
}
