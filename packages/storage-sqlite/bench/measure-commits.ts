/** What a number of writers have done. */
export interface Measurement {
	readonly commits: number;
	/** In ascending order. */
	readonly latenciesMs: readonly number[];
	readonly tookMs: number;
}

/** Lets writers commit as fast as they can, each one commit after the other. */
export async function measure(
	writers: number,
	seconds: number,
	commit: (writer: number, step: number) => Promise<void>,
): Promise<Measurement> {
	const latenciesMs: number[] = [];
	const startMs = performance.now();
	const endMs = startMs + seconds * 1000;
	await Promise.all(
		Array.from({ length: writers }, async (_, writer) => {
			for (let step = 0; performance.now() < endMs; step++) {
				const beginMs = performance.now();
				await commit(writer, step);
				latenciesMs.push(performance.now() - beginMs);
			}
		}),
	);
	return {
		commits: latenciesMs.length,
		latenciesMs: latenciesMs.sort((a, b) => a - b),
		tookMs: performance.now() - startMs,
	};
}

/** A row of a table. */
export function summary({ commits, latenciesMs, tookMs }: Measurement) {
	const percentile = (share: number) =>
		(latenciesMs[Math.floor((latenciesMs.length - 1) * share)] ?? 0).toFixed(2);
	return {
		"commits a second": Math.round((commits * 1000) / tookMs),
		"p50 ms": percentile(0.5),
		"p99 ms": percentile(0.99),
	};
}
