import { Code, ConnectError } from "@connectrpc/connect";

/** What a caller passes as headers. */
type HeadersInit = NonNullable<ConstructorParameters<typeof Headers>[0]>;

/**
 * A copy of a caller's headers.
 *
 * @throws ConnectError Internal that names a header whose name or value is invalid. The error of `Headers` has the value
 *   instead, which may be a secret.
 */
export function copyHeaders(headers: HeadersInit): Headers {
	try {
		return new Headers(headers);
	} catch (thrown) {
		const problem = problemOf(headers);
		throw problem === undefined ? thrown : new ConnectError(problem, Code.Internal);
	}
}

/** What is wrong with the first header that is invalid. */
function problemOf(headers: HeadersInit): string | undefined {
	const entries: Iterable<readonly (string | undefined)[]> =
		Symbol.iterator in headers ? headers : Object.entries(headers);
	for (const [name = "", value = ""] of entries) {
		if (!isValid(name, "")) {
			return `header ${JSON.stringify(name)} has an invalid name`;
		}
		if (!isValid(name, value)) {
			return `header ${name} has an invalid value`;
		}
	}
	return undefined;
}

function isValid(name: string, value: string): boolean {
	try {
		new Headers([[name, value]]);
		return true;
	} catch {
		return false;
	}
}
