import { create } from "@bufbuild/protobuf";
import {
	OverviewSchema,
	TypeOverviewSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { expect, it } from "vitest";
import { attentionOf, typesByAttention } from "./attention.ts";

it("names the types with deletions, those with the most first, and none of a server that does not count them", () => {
	const types = [
		create(TypeOverviewSchema, { type: "a.v1.Older", writesPerSecond: 5 }),
		create(TypeOverviewSchema, { type: "a.v1.None", beingDeleted: 0n }),
		create(TypeOverviewSchema, { type: "a.v1.One", beingDeleted: 1n }),
		create(TypeOverviewSchema, { type: "a.v1.Two", beingDeleted: 2n }),
		create(TypeOverviewSchema, { type: "a.v1.False", withFalseCondition: 1n }),
	];
	expect(attentionOf(create(OverviewSchema, { types })).deletions).toEqual([
		{ type: "a.v1.Two", count: 2 },
		{ type: "a.v1.One", count: 1 },
	]);
	expect(typesByAttention(types).map(({ type }) => type)).toEqual([
		...["a.v1.False", "a.v1.Two", "a.v1.One", "a.v1.Older", "a.v1.None"],
	]);
});
