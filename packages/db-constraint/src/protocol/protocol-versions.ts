import { Code, ConnectError } from "@connectrpc/connect";
import type { Route } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import type { Deployed } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { displayDeployed } from "../shadow/shadow.ts";

/** The header of each response that says which versions of the protocol its server speaks, as in `1-2`. */
export const protocolHeader = "x-plinth-protocol";

/** The versions of the protocol between deployments that some code speaks: all from the oldest to the newest. */
export interface ProtocolVersions {
	readonly oldest: number;
	readonly newest: number;
}

/**
 * The versions of the protocol between deployments that this code speaks: that of this release and that of the one before.
 * They do not depend on the versions of types: what is being deleted is known in all of these.
 *
 * A release that changes the meaning of a request or response raises `newest`, and keeps serving the version before, with
 * recorded exchanges of it in `testdata/exchanges`. A field that may be absent is no such change.
 *
 * - 1: requests name no version.
 * - 2: requests name the versions of their sender.
 */
export const protocolVersions: ProtocolVersions = { oldest: 1, newest: 2 };

/** As in `1-2`. */
export function encodeProtocolVersions({ oldest, newest }: ProtocolVersions): string {
	return `${oldest}-${newest}`;
}

/**
 * Refuses a caller with which this deployment has no version of the protocol in common.
 *
 * @param self - this deployment.
 * @throws ConnectError Unavailable, which names the versions of both, and the deployment to update.
 */
export function assertSpoken(route: Route, self: Deployed): void {
	const newest = route.protocol || 1;
	const oldest = route.oldestProtocol || newest;
	if (oldest > protocolVersions.newest || newest < protocolVersions.oldest) {
		const from = displayDeployed(route.from);
		const own = displayDeployed(self);
		const theirs = encodeProtocolVersions({ oldest, newest });
		throw new ConnectError(
			`${own} speaks the versions ${encodeProtocolVersions(protocolVersions)} of the protocol between deployments, and ${from} the versions ${theirs}: update ${newest < protocolVersions.oldest ? from : own}`,
			Code.Unavailable,
		);
	}
}
