import { Code, ConnectError } from "@connectrpc/connect";

/** Whether a call has failed because the server is older, and lacks the method. */
export function isOlderServer(error: unknown): boolean {
	return error instanceof ConnectError && error.code === Code.Unimplemented;
}
