import { describe, expect, it } from "vitest";
import { serverLeasePrefix, shardLeaseName, shardLeaseOf } from "./shard-leases.ts";

describe("the names of the leases of a sharded controller", () => {
	it("tell the controller and the shard", () => {
		for (const name of ["controllers-prober", "a-shard-3", "b-server-1"]) {
			expect(shardLeaseOf(shardLeaseName(name, 15))).toEqual({ name, shard: 15 });
			expect(shardLeaseOf(`${serverLeasePrefix(name)}00c0ffee0012`)).toEqual({
				...{ name, shard: undefined },
			});
		}
	});

	it("are no other names", () => {
		for (const name of ["controllers", "-shard-1", "x-shard-", "x-shard-1/", "x-server-zz", ""]) {
			expect(shardLeaseOf(name)).toBeUndefined();
		}
	});
});
