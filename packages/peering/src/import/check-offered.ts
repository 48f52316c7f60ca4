import type { GetExportResponse } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { isUlid } from "@plinth/resource";
import { peeringLimits } from "../limits.ts";
import { ProtocolViolation } from "./apply-messages.ts";

/** Checks what each commit of an import has of a description. @throws ProtocolViolation. */
export function checkOffered(described: GetExportResponse): GetExportResponse {
	const { generation, incarnation } = described;
	if (!isUlid(incarnation) || generation.length > peeringLimits.generationLength) {
		throw new ProtocolViolation("the peer has sent a malformed generation or incarnation");
	}
	return described;
}
