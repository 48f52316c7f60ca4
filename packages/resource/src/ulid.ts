import type { Runtime } from "@plinth/runtime";
import { isValid, ulid } from "ulid";

/** A fresh ULID: the clock's time in milliseconds, then 80 random bits. */
export function newUlid(runtime: Pick<Runtime, "clock" | "random">): string {
	return ulid(Math.floor(runtime.clock.now()), () => runtime.random.next());
}

/** Whether the string is a ULID in its canonical upper-case form. */
export function isUlid(value: string): boolean {
	return isValid(value) && value === value.toUpperCase();
}
