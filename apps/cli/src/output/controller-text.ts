import {
	type Controller,
	type Phase,
	PhaseSchema,
	Placement,
} from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";

/** Which servers run it, and of a sharded one, how much of it this server does. */
export function runsOn({ placement, shards }: Controller): string {
	switch (placement) {
		case Placement.EACH_SERVER:
			return "each server";
		case Placement.SHARDED:
			return shards === undefined
				? "all shards"
				: `${shards.open.length} of ${shards.count} shards`;
		default:
			return "one server";
	}
}

/** A phase in words. */
export function phaseName(phase: Phase): string {
	return (PhaseSchema.value[phase]?.localName ?? "").toLowerCase().replaceAll("_", " ");
}
