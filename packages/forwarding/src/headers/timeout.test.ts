import { expect, it } from "vitest";
import { timeoutMs } from "./timeout.ts";

it.each([
	["grpc-timeout", "1H", 3_600_000],
	["grpc-timeout", "2M", 120_000],
	["grpc-timeout", "5S", 5_000],
	["grpc-timeout", "99999999m", 99_999_999],
	["grpc-timeout", "1000u", 1],
	["grpc-timeout", "1000000n", 1],
	["grpc-timeout", "123456789S", undefined],
	["grpc-timeout", "-1S", undefined],
	["connect-timeout-ms", "250", 250],
	["connect-timeout-ms", "12345678901", undefined],
	["connect-timeout-ms", "1.5", undefined],
	["accept", "1", undefined],
])("%s: %s is a limit of %s ms", (name, value, expected) => {
	expect(timeoutMs({ header: (each) => (each === name ? value : undefined) })).toBe(expected);
});
