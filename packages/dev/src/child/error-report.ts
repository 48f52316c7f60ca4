import type { ErrorReport } from "./messages.ts";

/** Errors whose messages say everything. Their packages are loaded only by a server. */
const expected: ReadonlySet<string> = new Set([
	...["ModuleError", "StorageError", "StorageFileError", "UnrecognizedData", "ListenError"],
	...["UsageError", "FileError", "OverlappingPrefix"],
]);

/** An error for the supervisor. */
export function errorReport(failure: unknown): ErrorReport {
	if (!(failure instanceof Error)) {
		return { name: "Error", message: String(failure), isExpected: false };
	}
	const { name, message, stack, cause } = failure;
	return {
		...{ name, message, isExpected: expected.has(name) },
		...(stack !== undefined && { stack }),
		...(cause instanceof Error && { cause: errorReport(cause) }),
	};
}
