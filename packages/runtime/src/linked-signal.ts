/** See `linkedSignal`. */
export interface LinkedSignal extends Disposable {
	readonly signal: AbortSignal;
}

/**
 * A signal that aborts when the first of several does, until it is disposed of.
 *
 * `AbortSignal.any` needs no end, but has its price: each is known to its sources by weak references, which garbage
 * collection has to visit, and stays in memory while something listens, until it aborts.
 */
export function linkedSignal(...sources: readonly AbortSignal[]): LinkedSignal {
	const linked = new AbortController();
	const unlink = () => {
		for (const source of sources) {
			source.removeEventListener("abort", onAbort);
		}
	};
	const onAbort = () => {
		unlink();
		linked.abort(sources.find((source) => source.aborted)?.reason);
	};
	for (const source of sources) {
		source.addEventListener("abort", onAbort);
	}
	if (sources.some((source) => source.aborted)) {
		onAbort();
	}
	return { signal: linked.signal, [Symbol.dispose]: unlink };
}
