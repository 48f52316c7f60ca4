import { Code, ConnectError } from "@connectrpc/connect";
import type { ID } from "@plinth/proto";
import { gvkKey, type TypeLike } from "@plinth/resource";

/** A refusal of what the caller sent. */
export function invalidArgument(message: string): ConnectError {
	return new ConnectError(message, Code.InvalidArgument);
}

/** Something that the request lacks. `path` starts at the request and uses proto names. */
export function missing(path: string): ConnectError {
	return invalidArgument(`${path} is required`);
}

/** Something in the request that is malformed. */
export function malformed(path: string, why: string): ConnectError {
	return invalidArgument(`${path} invalid: ${why}`);
}

/** A malformed value in the request. A long one is quoted in part. */
export function malformedValue(path: string, why: string, value: string): ConnectError {
	return malformed(path, `${why}, ${got(value)}`);
}

/** A refused value, quoted: `got: "Miles"`. */
export function got(value: string): string {
	const shown = value.length > quotedLength ? `${value.slice(0, quotedLength)}…` : value;
	return `got: ${JSON.stringify(shown)}`;
}

/** How many characters of a refused value a message repeats. */
const quotedLength = 100;

/** A type that no module has registered. */
export function notRegistered(type: TypeLike): ConnectError {
	return invalidArgument(`resource type ${gvkKey(type)} not registered`);
}

/** A version that the caller gave and that is not the stored one. */
export function staleVersion(): ConnectError {
	return new ConnectError(
		"CAS operation failed because the given version doesn't match what is stored",
		Code.Aborted,
	);
}

/** A uid that the caller gave and that is not the stored one. */
export function otherUid(): ConnectError {
	return new ConnectError(
		"write failed because the given uid doesn't match what is stored",
		Code.FailedPrecondition,
	);
}

/** A resource that is there, and must not be. */
export function alreadyThere(id: ID): ConnectError {
	return new ConnectError(
		`${id.name} is there already: write it without create_only to replace it`,
		Code.AlreadyExists,
	);
}

/** A resource that is not there, or not in that incarnation. */
export function resourceNotFound(): ConnectError {
	return new ConnectError("resource not found", Code.NotFound);
}
