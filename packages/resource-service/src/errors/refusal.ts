import { Code, ConnectError } from "@connectrpc/connect";
import type { ID } from "@plinth/proto";
import { gvkKey, type TypeLike } from "@plinth/resource";

/** The error for an invalid request. */
export function invalidArgument(message: string): ConnectError {
	return new ConnectError(message, Code.InvalidArgument);
}

/** The error for a missing field. `path` starts at the request and uses proto names. */
export function missing(path: string): ConnectError {
	return invalidArgument(`${path} is required`);
}

/** The error for a malformed field. */
export function malformed(path: string, why: string): ConnectError {
	return invalidArgument(`${path} invalid: ${why}`);
}

/** The error for a malformed value. A long value is truncated. */
export function malformedValue(path: string, why: string, value: string): ConnectError {
	return malformed(path, `${why}, ${got(value)}`);
}

/** A refused value, in quotes: `got: "Miles"`. */
export function got(value: string): string {
	return `got: ${quoted(value)}`;
}

/** A value of a request in a message. A long one is truncated. */
export function quoted(value: string): string {
	const shown = value.length > quotedLength ? `${value.slice(0, quotedLength)}…` : value;
	return JSON.stringify(shown);
}

/** How many characters of a refused value a message repeats. */
const quotedLength = 100;

/** The error for a type that no module has registered. */
export function notRegistered(type: TypeLike): ConnectError {
	return invalidArgument(`resource type ${gvkKey(type)} not registered`);
}

/** The error for a uid that differs from the stored one. */
export function uidMismatch(): ConnectError {
	return new ConnectError(
		"write failed because the given uid doesn't match what is stored",
		Code.FailedPrecondition,
	);
}

/** The error for creating a resource that exists. */
export function alreadyExists(id: ID): ConnectError {
	return new ConnectError(
		`${id.name} already exists: write it without create_only to replace it`,
		Code.AlreadyExists,
	);
}

/** The error for a resource that does not exist, or not in that incarnation. */
export function resourceNotFound(): ConnectError {
	return new ConnectError("resource not found", Code.NotFound);
}
