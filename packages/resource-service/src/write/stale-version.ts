import { Code, ConnectError } from "@connectrpc/connect";
import type { Resource } from "@plinth/proto";
import { quoted } from "../errors/refusal.ts";
import { asFinal } from "./final-refusal.ts";

/**
 * Refuses a request that names a version other than the stored one. An empty version matches any. The refusal names both,
 * the stored one as this attempt has read it, which may be eventually consistent. It is final if the stored version is a
 * later one: no resource returns to an earlier version.
 *
 * @throws ConnectError Aborted.
 */
export function refuseStaleVersion(version: string, stored: Resource | undefined): void {
	if (version && version !== stored?.version) {
		const found = stored === undefined ? "nothing is stored" : `stored ${quoted(stored.version)}`;
		const refusal = new ConnectError(
			`CAS operation failed because the given version doesn't match what is stored: given ${quoted(version)}, ${found}`,
			Code.Aborted,
		);
		throw stored !== undefined && isEarlier(version, stored.version) ? asFinal(refusal) : refusal;
	}
}

/** Whether both versions are revisions, and the first one is earlier. */
function isEarlier(version: string, other: string): boolean {
	return (
		/^\d+$/.test(version) &&
		/^\d+$/.test(other) &&
		(version.length === other.length ? version < other : version.length < other.length)
	);
}
