const units = [
	["m", 1],
	["S", 1_000],
	["M", 60_000],
	["H", 3_600_000],
] as const;

/** gRPC allows eight digits. */
const maxValue = 99_999_999;

/** The value of the header `grpc-timeout`, rounded up. */
export function timeoutHeader(timeoutMs: number): string {
	for (const [unit, ms] of units) {
		const value = Math.max(1, Math.ceil(timeoutMs / ms));
		if (value <= maxValue) {
			return `${value}${unit}`;
		}
	}
	return `${maxValue}H`;
}
