import type { Runtime } from "@plinth/runtime";
import { decodeTime, isValid } from "ulid";

/** Crockford's base 32. */
const digits = Uint8Array.from("0123456789ABCDEFGHJKMNPQRSTVWXYZ", (digit) => digit.charCodeAt(0));
const timeDigits = 10;
const allDigits = 26;

/**
 * A fresh ULID: the clock's time in milliseconds, then 80 random bits. The library would concatenate it digit by digit,
 * in five times the time.
 */
export function newUlid(runtime: Pick<Runtime, "clock" | "random">): string {
	const codes = new Array<number>(allDigits);
	let time = Math.floor(runtime.clock.now());
	for (let index = timeDigits - 1; index >= 0; index -= 1) {
		const digit = time % 32;
		codes[index] = digits[digit] ?? 0;
		time = (time - digit) / 32;
	}
	for (let index = allDigits - 1; index >= timeDigits; index -= 1) {
		codes[index] = digits[Math.floor(runtime.random.next() * 32)] ?? 0;
	}
	return String.fromCharCode(...codes);
}

/** Whether the string is a ULID in its canonical upper-case form. */
export function isUlid(value: string): boolean {
	return isValid(value) && value === value.toUpperCase();
}

/** When a ULID was generated, in milliseconds since 1970; `undefined` if it is none. */
export function ulidTimeMs(ulid: string): number | undefined {
	return isUlid(ulid) ? decodeTime(ulid) : undefined;
}
