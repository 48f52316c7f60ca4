import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { shardLeaseOf, singletonLease } from "@plinth/controller";
import { clientLeaseName } from "@plinth/leases";
import {
	LeaseKind,
	type LeaseOverview,
	LeaseOverviewSchema,
	type Overview,
	OverviewSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import type { GrantedLease } from "./granted-leases.ts";
import type { HeldLease } from "./held-leases.ts";

/** The leases of an overview, and how many there are. */
export type LeaseReport = Pick<Overview, "leases" | "leasesTotal">;

/** How many leases a caller sees at most. */
export const mostLeases = 100;

/** What a server knows about leases. */
export interface KnownLeases {
	/** Those that it holds. */
	readonly held: readonly HeldLease[];
	/** Those of clients. */
	readonly granted: readonly GrantedLease[];
}

/**
 * All leases of one server, those of servers first: which of them a caller sees depends on its rights. Those of a sharded
 * controller are one.
 */
export function leasesOfServer({ held, granted }: KnownLeases, server: string): LeaseReport {
	const groups = Map.groupBy(held, ({ name }) => shardLeaseOf(name)?.name);
	const single = groups.get(undefined) ?? [];
	groups.delete(undefined);
	return sorted([
		...single.map((lease) => leaseOf(lease, server)),
		...[...groups].map(([name = "", leases]) => shardsOf(name, leases, server)),
		...granted.map((lease) => clientLeaseOf(lease, server)),
	]);
}

/** The leases of several servers. One of a client that several know is that of the server by which it ends last. */
export function mergeLeases(all: readonly LeaseReport[]): LeaseReport {
	const leases = all.flatMap((each) => each.leases);
	const leftOut = all.reduce((sum, each) => sum + each.leasesTotal - each.leases.length, 0);
	const ofClients = new Map<string, LeaseOverview>();
	for (const lease of leases.filter(isOfClient)) {
		const known = ofClients.get(lease.name);
		if (known === undefined || endMs(lease) > endMs(known)) {
			ofClients.set(lease.name, lease);
		}
	}
	const ofServers = leases.filter((lease) => !isOfClient(lease));
	return sorted([...ofServers, ...ofClients.values()], leftOut);
}

/**
 * The overview with the leases that a caller may see: not those of clients that it may not hold itself, and no more than
 * `mostLeases` of the others. All are counted.
 */
export function withVisibleLeases(
	overview: Overview,
	mayHold: (name: string) => boolean,
): Overview {
	const leases: LeaseOverview[] = [];
	for (const lease of overview.leases) {
		if (leases.length === mostLeases) {
			break;
		}
		if (!isOfClient(lease) || mayHold(lease.name)) {
			leases.push(lease);
		}
	}
	return create(OverviewSchema, { ...overview, leases });
}

function leaseOf({ name, sinceMs }: HeldLease, server: string): LeaseOverview {
	const kind = name === singletonLease ? LeaseKind.SINGLETONS : LeaseKind.SERVER;
	return create(LeaseOverviewSchema, { kind, name, server, heldSince: timestampFromMs(sinceMs) });
}

function shardsOf(name: string, leases: readonly HeldLease[], server: string): LeaseOverview {
	const shards = leases.flatMap((lease) => shardLeaseOf(lease.name)?.shard ?? []);
	return create(LeaseOverviewSchema, {
		...{ kind: LeaseKind.SHARDS, name, server },
		shards: shards.sort((a, b) => a - b),
		heldSince: timestampFromMs(Math.max(...leases.map(({ sinceMs }) => sinceMs))),
	});
}

function clientLeaseOf(lease: GrantedLease, server: string): LeaseOverview {
	const { holder, sinceMs, expiresMs } = lease;
	return create(LeaseOverviewSchema, {
		...{ kind: LeaseKind.CLIENT, name: clientLeaseName(lease.name), server, holder },
		...(sinceMs !== undefined && { heldSince: timestampFromMs(sinceMs) }),
		expiresAt: timestampFromMs(Math.round(expiresMs)),
	});
}

function sorted(leases: readonly LeaseOverview[], leftOut = 0): LeaseReport {
	return { leases: leases.toSorted(byKindAndName), leasesTotal: leases.length + leftOut };
}

function byKindAndName(a: LeaseOverview, b: LeaseOverview): number {
	return a.kind - b.kind || compare(a.name, b.name) || compare(a.server, b.server);
}

function compare(a: string, b: string): number {
	return a < b ? -1 : Number(a > b);
}

function isOfClient({ kind }: LeaseOverview): boolean {
	return kind === LeaseKind.CLIENT;
}

function endMs({ expiresAt }: LeaseOverview): number {
	return expiresAt === undefined ? 0 : timestampMs(expiresAt);
}
