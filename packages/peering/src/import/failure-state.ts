import { Code, ConnectError } from "@connectrpc/connect";
import { PeeringRemovedSchema } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { Exhausted } from "@plinth/storage";
import { ImportRefused } from "./import-source.ts";
import { PartitionTaken, TooManyCopies } from "./import-store.ts";
import type { ImportState } from "./live-import.ts";

/** The state of an import that a failure has ended, or keeps from being started. */
export function stateOf(failure: unknown): ImportState {
	if (failure instanceof ImportRefused) {
		return failure.state;
	}
	if (failure instanceof PartitionTaken) {
		return "PartitionTaken";
	}
	if (failure instanceof TooManyCopies) {
		return "TooManyCopies";
	}
	if (failure instanceof Exhausted) {
		return "Full";
	}
	if (!(failure instanceof ConnectError)) {
		return "Failed";
	}
	if (failure.findDetails(PeeringRemovedSchema).length > 0) {
		return "PeeringRemoved";
	}
	switch (failure.code) {
		case Code.Unauthenticated:
		case Code.PermissionDenied:
			return "Refused";
		case Code.Aborted:
		case Code.NotFound:
		case Code.Canceled:
			return "Connecting";
		case Code.Unavailable:
		case Code.DeadlineExceeded:
			return "Unreachable";
		default:
			return "Failed";
	}
}

/** What the state of an import says of a failure: 500 characters at most. */
export function messageOf(failure: unknown): string {
	if (failure instanceof ConnectError) {
		return failure.rawMessage.slice(0, 500);
	}
	return failure instanceof Error ? failure.message.slice(0, 500) : String(failure);
}
