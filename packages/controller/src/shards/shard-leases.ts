/** The name of the lease of one shard. */
export function shardLeaseName(name: string, shard: number): string {
	return `${name}-shard-${shard}`;
}

/** What the names of the leases begin with by which servers take part. */
export function serverLeasePrefix(name: string): string {
	return `${name}-server-`;
}

/** What a lease of a sharded controller is for. */
export interface ShardLease {
	/** What the names of all leases of the controller begin with. */
	readonly name: string;
	/** Absent if the server that holds the lease takes part by it. */
	readonly shard: number | undefined;
}

/** What a lease is for, by its name; `undefined` if it is not one of a sharded controller. */
export function shardLeaseOf(lease: string): ShardLease | undefined {
	const [, name, shard] = /^(.+)-(?:shard-(\d+)|server-[0-9a-f]+)$/.exec(lease) ?? [];
	return name === undefined
		? undefined
		: { name, shard: shard === undefined ? undefined : Number(shard) };
}
