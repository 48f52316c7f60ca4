const units = [
	["d", 86_400],
	["h", 3_600],
	["m", 60],
	["s", 1],
] as const;

/** A duration in its two largest units, as in `3d4h`. */
export function shortDuration(ms: number): string {
	let rest = Math.max(0, Math.floor(ms / 1_000));
	const parts: string[] = [];
	for (const [unit, seconds] of units) {
		const count = Math.floor(rest / seconds);
		rest -= count * seconds;
		if (count > 0) {
			parts.push(`${count}${unit}`);
		}
		// From ten of a unit on, the next one says little.
		if (parts.length === 2 || count >= 10) {
			break;
		}
	}
	return parts.join("") || "0s";
}

/** A duration of a fraction of a second or a few: with two digits, or whole milliseconds, as in `0.35 ms` or `1.2 s`. */
export function milliseconds(ms: number): string {
	if (ms >= 999.5) {
		return `${(ms / 1_000).toFixed(1)} s`;
	}
	// It is never shown as nothing.
	const small = Math.max(0.01, ms).toFixed(2);
	return `${ms >= 9.95 ? Math.round(ms) : ms >= 0.995 ? ms.toFixed(1) : small} ms`;
}

/** A number of things: as it is up to 99,999, and then in thousands, millions and so on. */
export function count(value: number | bigint): string {
	const number = Number(value);
	return number < 100_000
		? // Not with the locales of the browser: loading them takes longer than all else of the first paint.
			String(number).replace(/\B(?=(?:\d{3})+$)/g, ",")
		: scaled(number, 1_000, ["k", "M", "G", "T"]);
}

/** A number of bytes, as in `12 MiB`. */
export function bytes(value: number | bigint): string {
	const number = Number(value);
	return number < 1_024 ? `${number} B` : scaled(number, 1_024, [" KiB", " MiB", " GiB", " TiB"]);
}

/** A rate per second: with one decimal if it is small. */
export function rate(perSecond: number): string {
	if (perSecond === 0) {
		return "0";
	}
	return perSecond < 9.95 ? Math.max(0.1, perSecond).toFixed(1) : count(Math.round(perSecond));
}

function scaled(value: number, base: number, names: readonly string[]): string {
	let rest = value;
	let name = "";
	for (const next of names) {
		rest /= base;
		name = next;
		if (Math.round(rest) < base) {
			break;
		}
	}
	return `${rest < 9.95 ? rest.toFixed(1) : Math.round(rest)}${name}`;
}

/** `1 watch`, `2 watches`. */
export function plural(value: number | bigint, one: string, many = `${one}s`): string {
	return `${count(value)} ${Number(value) === 1 ? one : many}`;
}

/** As `dateTime`, with the offset of the zone, as in `2026-01-02 03:04:05 UTC+01:00`. */
export function zonedDateTime(ms: number): string {
	const minutes = -new Date(ms).getTimezoneOffset();
	return `${dateTime(ms)} ${zoneName(minutes)}`;
}

/** The name of an offset from UTC in minutes, as in `UTC+05:30`. */
export function zoneName(minutes: number): string {
	if (minutes === 0) {
		return "UTC";
	}
	const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
	const digits = [hours, rest].map((each) => String(each).padStart(2, "0")).join(":");
	return `UTC${minutes < 0 ? "-" : "+"}${digits}`;
}

/** An instant in the time zone of the browser, to the second. */
export function dateTime(ms: number): string {
	const date = new Date(ms);
	const part = (value: number) => String(value).padStart(2, "0");
	const day = `${date.getFullYear()}-${part(date.getMonth() + 1)}-${part(date.getDate())}`;
	return `${day} ${part(date.getHours())}:${part(date.getMinutes())}:${part(date.getSeconds())}`;
}
