import { Code, ConnectError } from "@connectrpc/connect";
import { stdSerializers } from "pino";

/** Fields of errors that repeat others, or that only code uses. */
const unused: ReadonlySet<string> = new Set(["name", "rawMessage", "isWireError", "metadata"]);

/** Fields of a log line, with the properties of an error that they are read from. */
const standardFields = [
	["type", "name"],
	["message", "message"],
	["stack", "stack"],
] as const;

/**
 * The fields of an error in a log line: `type`, `message` and `stack`, each with those of its causes, and what else the
 * error has, unless it is empty. The code of a ConnectError is its name, as in `Aborted`. What is no error stays as it is.
 * Never throws: code of users may fail with anything, such as an error with a getter that throws.
 */
export function errorFields(failure: unknown): unknown {
	try {
		return fieldsOf(failure);
	} catch {
		return readableFields(failure);
	}
}

function fieldsOf(failure: unknown): unknown {
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

/** The type, the message and the stack of an error, as far as they can be read. */
function readableFields(failure: unknown): Readonly<Record<string, string>> {
	const fields: Record<string, string> = { message: "an error that can't be read" };
	for (const [field, property] of standardFields) {
		try {
			const value: unknown = Reflect.get(Object(failure), property);
			if (typeof value === "string" && value !== "") {
				fields[field] = value;
			}
		} catch {
			// It is left out.
		}
	}
	return fields;
}
