import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";

/**
 * Refuses a request that names a version other than the stored one. An empty version matches any.
 *
 * @throws ConnectError Aborted.
 */
export function refuseStaleVersion(version: string, stored: Resource | undefined): void {
	if (version && version !== stored?.version) {
		throw new ConnectError(
			"CAS operation failed because the given version doesn't match what is stored",
			Code.Aborted,
		);
	}
}
