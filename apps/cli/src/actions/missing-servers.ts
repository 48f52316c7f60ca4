import type { Server } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type { Io } from "../io.ts";
import { printable } from "../output/printable.ts";
import { warn } from "../warn.ts";

/** Warns of the servers that have not reported. */
export function warnOfMissing(servers: readonly Server[], io: Io): void {
	for (const { name, missing } of servers) {
		if (missing !== "") {
			warn(io, printable(`what ${name} does is not shown: it ${missing}`));
		}
	}
}
