import {
	LeaseKind,
	type LeaseOverview,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";

/** What a lease is for, in words. */
export function leaseUse({ kind, shards }: LeaseOverview): string {
	switch (kind) {
		case LeaseKind.SINGLETONS:
			return "singleton controllers";
		case LeaseKind.SHARDS:
			return shards.length === 0
				? "no shard"
				: `${shards.length === 1 ? "shard" : "shards"} ${rangesOf(shards)}`;
		case LeaseKind.CLIENT:
			return "client";
		default:
			return "server";
	}
}

/** What the names of the leases of a server's sharded controllers begin with, before the name of the controller. */
const controllerPrefix = "controllers-";

/**
 * The controller of a lease.
 *
 * @returns its name; empty if the lease is of several controllers, or of one that the overview does not name so; `undefined` if it
 * is of none.
 */
export function controllerOf(
	{ kind, name }: LeaseOverview,
	controllers: ReadonlySet<string>,
): string | undefined {
	if (kind === LeaseKind.SINGLETONS) {
		return "";
	}
	if (kind !== LeaseKind.SHARDS) {
		return undefined;
	}
	const controller = name.startsWith(controllerPrefix) ? name.slice(controllerPrefix.length) : name;
	return controllers.has(controller) ? controller : "";
}

/** Numbers in ascending order, as in `0–3, 7`. */
function rangesOf(numbers: readonly number[]): string {
	const ranges: [from: number, to: number][] = [];
	for (const number of numbers) {
		const last = ranges.at(-1);
		if (last !== undefined && last[1] === number - 1) {
			last[1] = number;
		} else {
			ranges.push([number, number]);
		}
	}
	return ranges.map(([from, to]) => (from === to ? `${from}` : `${from}–${to}`)).join(", ");
}
