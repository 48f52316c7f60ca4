import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ResponseHeaderSchema } from "../gen/etcdserverpb/rpc_pb.ts";
import { OtherCluster, StorePosition, WentBack } from "./store-position.ts";

const header = (revision: bigint, raftTerm = 3n, clusterId = 1n) =>
	create(ResponseHeaderSchema, { clusterId, revision, raftTerm });

describe("StorePosition", () => {
	it("reports another cluster, and a revision before what was known when the request was sent", () => {
		const position = new StorePosition();
		const broken: Error[] = [];
		position.onBroken((error) => broken.push(error));
		const before = position.known;
		position.check(before, header(7n));
		position.check(before, header(5n));
		expect(() => position.check(position.known, header(6n))).toThrow(WentBack);
		expect(() => position.check(position.known, header(7n, 3n, 2n))).toThrow(OtherCluster);
		expect(broken).toHaveLength(2);
	});

	it("accepts the older Raft term of a member that has caught up by a snapshot", () => {
		const position = new StorePosition();
		position.check(position.known, header(7n, 3n));
		position.check(position.known, header(7n, 2n));
		expect(position.known).toEqual({ revision: 7n });
	});
});
