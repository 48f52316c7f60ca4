import { Code, ConnectError } from "@connectrpc/connect";
import { stdSerializers } from "pino";

/** Fields of errors that repeat others, or that only code uses. */
const unused: ReadonlySet<string> = new Set(["name", "rawMessage", "isWireError", "metadata"]);

/**
 * The fields of an error in a log line: `type`, `message` and `stack`, each with those of its causes, and what else the
 * error has, unless it is empty. The code of a ConnectError is its name, as in `Aborted`. What is no error stays as it is.
 */
export function errorFields(failure: unknown): unknown {
	if (!(failure instanceof Error)) {
		return failure;
	}
	const entries = Object.entries(stdSerializers.err(failure)).filter(
		([key, value]) => !unused.has(key) && !isEmpty(value),
	);
	const code = failure instanceof ConnectError ? { code: Code[failure.code] } : {};
	return { ...Object.fromEntries(entries), ...code };
}

function isEmpty(value: unknown): boolean {
	return (
		value === undefined ||
		value === null ||
		value === "" ||
		(typeof value === "object" && Object.keys(value).length === 0)
	);
}
