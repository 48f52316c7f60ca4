import { Code, ConnectError } from "@connectrpc/connect";
import { UnknownTypeError } from "@plinth/documents/unknown-type-error";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure, usageFailure } from "../failure.ts";
import { isNetworkFailure, networkAdvice } from "./network-failure.ts";

const codes: Partial<Record<Code, ExitCode>> = {
	[Code.NotFound]: exitCodes.notFound,
	[Code.Aborted]: exitCodes.conflict,
	[Code.FailedPrecondition]: exitCodes.conflict,
	[Code.PermissionDenied]: exitCodes.permission,
	[Code.Unauthenticated]: exitCodes.permission,
	[Code.Unavailable]: exitCodes.unreachable,
	[Code.DeadlineExceeded]: exitCodes.timeout,
};

/**
 * Maps the error of a call to a failure with an exit code and, if the server's message does not say so, what to
 * do. Other errors are rethrown.
 *
 * @param sent - what the request consists of.
 */
export function callFailure(
	error: unknown,
	server: string,
	sent: "request" | "resource" = "request",
): Failure {
	if (error instanceof Failure) {
		return error;
	}
	if (error instanceof UnknownTypeError) {
		return usageFailure(error.message);
	}
	if (!(error instanceof ConnectError)) {
		throw error;
	}
	const exitCode = isNetworkFailure(error)
		? exitCodes.unreachable
		: (codes[error.code] ?? exitCodes.failed);
	return new Failure(exitCode, messageOf(error, server, sent), { cause: error });
}

function messageOf(error: ConnectError, server: string, sent: string): string {
	const { rawMessage } = error;
	if (isNetworkFailure(error)) {
		return networkAdvice(error, server);
	}
	switch (error.code) {
		case Code.Unauthenticated:
			return `${server} does not accept the caller: ${rawMessage}. Set a token with --token-file or PLINTH_TOKEN, or store one with: plinth context set NAME --token-file FILE`;
		case Code.PermissionDenied:
			return `not allowed: ${rawMessage}`;
		case Code.Unavailable:
			return `${server} is not available: ${rawMessage}`;
		case Code.DeadlineExceeded:
			return `${server} did not respond in time (--request-timeout)`;
		case Code.Unimplemented:
			return `${server} does not implement this call (${rawMessage}). Is it a Plinth server, and at least as new as this command?`;
		case Code.ResourceExhausted: {
			const [, limit] = tooLarge.exec(rawMessage) ?? [];
			return limit === undefined
				? rawMessage
				: `the ${sent} is larger than the server accepts (${sizeText(Number(limit))})`;
		}
		default:
			return rawMessage;
	}
}

/** The message of Connect's servers, with their limit in bytes. */
const tooLarge = /^message size \d+ is larger than configured readMaxBytes (\d+)$/;

function sizeText(bytes: number): string {
	const mebibytes = bytes / 2 ** 20;
	return Number.isInteger(mebibytes) ? `${mebibytes} MiB` : `${bytes} bytes`;
}
