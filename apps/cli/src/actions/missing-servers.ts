import type { Server } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import type { Io } from "../io.ts";
import { printable } from "../output/printable.ts";
import { warn } from "../warn.ts";

/** Warns of the servers that have not reported, once of each: of several times, on one thing or another. */
export function warnOfMissing(servers: readonly Server[], io: Io): void {
	const named = new Set<string>();
	for (const { name, missing } of servers) {
		if (missing !== "" && !named.has(name)) {
			named.add(name);
			warn(io, printable(`what ${name} does is not shown: it ${missing}`));
		}
	}
}
