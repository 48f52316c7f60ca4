import type { FaultName } from "../fault-points.ts";

/** The fault that is planted in this process, if any; `plant-fault.fixture.ts` makes the fault points ask for it. */
export const planted: { fault: FaultName | undefined } = { fault: undefined };
