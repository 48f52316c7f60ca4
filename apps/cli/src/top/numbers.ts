/** A number of things: as it is up to 99,999, and then in thousands, millions and so on. */
export function count(value: number | bigint): string {
	const number = Number(value);
	return number < 100_000 ? String(number) : scaled(number, 1_000, ["k", "M", "G", "T"]);
}

/** A number of bytes, such as `12MiB`. */
export function bytes(value: number | bigint): string {
	const number = Number(value);
	return number < 1_024 ? `${number}B` : scaled(number, 1_024, ["KiB", "MiB", "GiB", "TiB"]);
}

/** A rate: with one decimal if it is small. */
export function rate(perSecond: number): string {
	if (perSecond === 0) {
		return "0";
	}
	return perSecond < 9.95 ? Math.max(0.1, perSecond).toFixed(1) : count(Math.round(perSecond));
}

/** A duration of a fraction of a second or a few, such as `0.35ms`, `12ms` or `1.2s`. It is never shown as nothing. */
export function latency(ms: number): string {
	if (ms >= 999.5) {
		return `${(ms / 1_000).toFixed(1)}s`;
	}
	const small = Math.max(0.01, ms).toFixed(2);
	return `${ms >= 9.95 ? Math.round(ms) : ms >= 0.995 ? ms.toFixed(1) : small}ms`;
}

function scaled(value: number, base: number, units: readonly string[]): string {
	let rest = value;
	let unit = "";
	for (const next of units) {
		rest /= base;
		unit = next;
		if (Math.round(rest) < base) {
			break;
		}
	}
	return `${rest < 9.95 ? rest.toFixed(1) : Math.round(rest)}${unit}`;
}
