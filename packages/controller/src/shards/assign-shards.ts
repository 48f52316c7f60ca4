import { hashText, shardCount } from "./shard-of.ts";

/**
 * Divides the shards among servers: rendezvous hashing, with a bound for each server. Each pair of a shard and a
 * server has a weight. The pairs are taken from the heaviest on, unless the shard has a server or the server as many
 * shards as the bound allows.
 *
 * All that know the same servers assign alike, each server has at most `ceil(16 / servers)` shards, and few shards
 * besides those of a server that comes or goes change hands.
 *
 * @returns the server of each shard; empty without servers.
 */
export function assignShards(servers: Iterable<string>): ReadonlyMap<number, string> {
	const names = [...servers].sort();
	const bound = Math.ceil(shardCount / Math.max(1, names.length));
	const pairs = names.flatMap((server) =>
		Array.from({ length: shardCount }, (_, shard) => ({
			shard,
			server,
			weight: hashText(`${shard}/${server}`),
		})),
	);
	// The sort is stable, so that equal weights are ordered by name.
	pairs.sort((a, b) => b.weight - a.weight);
	const assigned = new Map<number, string>();
	const counts = new Map<string, number>();
	for (const { shard, server } of pairs) {
		const count = counts.get(server) ?? 0;
		if (count < bound && !assigned.has(shard)) {
			assigned.set(shard, server);
			counts.set(server, count + 1);
		}
	}
	return assigned;
}
