import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import type { ClusterService } from "@plinth/proto/gen/plinth/cluster/v1/cluster_service_pb.js";
import type { ServerRecord } from "@plinth/storage";
import { challengeBytes, proofOf } from "./identity-proof.ts";

/** Proves to the other servers of the cluster that this server has written its record. */
export function createClusterService(
	own: () => Pick<ServerRecord, "id" | "secret">,
): ServiceImpl<typeof ClusterService> {
	return {
		identify({ id, challenge }) {
			if (challenge.length !== challengeBytes) {
				throw new ConnectError(
					`challenge must have ${challengeBytes} bytes, got ${challenge.length}`,
					Code.InvalidArgument,
				);
			}
			const server = own();
			if (id !== server.id) {
				throw new ConnectError("this server has another ID", Code.NotFound);
			}
			return { proof: proofOf(server.secret, challenge) };
		},
	};
}
