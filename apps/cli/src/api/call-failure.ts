import { Code, ConnectError } from "@connectrpc/connect";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
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
 * What a call's failure is to the caller: with the exit code, and with what to do where the server's
 * own words don't say it. What is no failure of a call is thrown on.
 */
export function callFailure(error: unknown, server: string): Failure {
	if (error instanceof Failure) {
		return error;
	}
	if (!(error instanceof ConnectError)) {
		throw error;
	}
	const exitCode = isNetworkFailure(error)
		? exitCodes.unreachable
		: (codes[error.code] ?? exitCodes.failed);
	return new Failure(exitCode, messageOf(error, server), { cause: error });
}

function messageOf(error: ConnectError, server: string): string {
	const { rawMessage } = error;
	if (isNetworkFailure(error)) {
		return networkAdvice(error, server);
	}
	switch (error.code) {
		case Code.Unauthenticated:
			return `${server} does not accept the caller: ${rawMessage}. Give a token with --token-file or PLINTH_TOKEN, or store one with: plinth context set NAME --token-file FILE`;
		case Code.PermissionDenied:
			return `not allowed: ${rawMessage}`;
		case Code.Unavailable:
			return `${server} is not available: ${rawMessage}`;
		case Code.DeadlineExceeded:
			return `${server} did not answer in time (--request-timeout)`;
		case Code.Unimplemented:
			return `${server} does not know this call (${rawMessage}): is it a Plinth server, and no older than this command?`;
		default:
			return rawMessage;
	}
}
