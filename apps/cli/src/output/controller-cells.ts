import { Phase, type Queue } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import { phaseName } from "./controller-text.ts";
import type { Cell } from "./table.ts";

/** The phase of a controller. */
export function phaseCell(phase: Phase): Cell {
	const isWell = phase === Phase.RUNNING || phase === Phase.WAITING_FOR_LEASE;
	return { text: phaseName(phase), tone: isWell ? "good" : "unsure" };
}

/** How many keys of a controller fail. */
export function failingCell(failing: number): Cell {
	return { text: String(failing), tone: failing > 0 ? "bad" : "plain" };
}

/** How many keys are ready. */
export function queued(queue: Queue | undefined): number {
	return (queue?.live ?? 0) + (queue?.background ?? 0);
}
