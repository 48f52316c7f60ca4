import { timestampMs } from "@bufbuild/protobuf/wkt";
import {
	LeaseKind,
	type LeaseOverview,
	type Overview,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { shortDuration } from "../configuration/duration.ts";
import { plainCell } from "../output/table.ts";
import type { OverviewTable } from "./overview-tables.ts";

/** The table of who holds which lease. */
export function leaseTable({ leases, leasesTotal, takenAt }: Overview): OverviewTable {
	const nowMs = takenAt === undefined ? 0 : timestampMs(takenAt);
	return {
		columns: [
			{ heading: "LEASE", cut: true },
			{ heading: "FOR", cut: true },
			{ heading: "HELD-BY", cut: true },
			{ heading: "HELD", cut: false },
		],
		rows: leases.map((lease) => {
			const { kind, name, server, holder, heldSince } = lease;
			return [
				plainCell(name),
				plainCell(useOf(lease)),
				plainCell(kind === LeaseKind.CLIENT ? holder : server),
				plainCell(heldSince === undefined ? "-" : shortDuration(nowMs - timestampMs(heldSince))),
			];
		}),
		leftOut: Math.max(0, leasesTotal - leases.length),
	};
}

/** What a lease is for. */
function useOf({ kind, shards }: LeaseOverview): string {
	switch (kind) {
		case LeaseKind.SINGLETONS:
			return "singletons";
		case LeaseKind.SHARDS:
			return shards.length === 1 ? "1 shard" : `${shards.length} shards`;
		case LeaseKind.CLIENT:
			return "client";
		default:
			return "server";
	}
}
