import { create } from "@bufbuild/protobuf";
import {
	LeaseKind,
	LeaseOverviewSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { expect, it } from "vitest";
import { controllerOf, leaseUse } from "./lease-text.ts";

const leaseOf = (kind: LeaseKind, name = "", shards: readonly number[] = []) =>
	create(LeaseOverviewSchema, { kind, name, shards: [...shards] });

it.each([
	[leaseOf(LeaseKind.SINGLETONS), "singleton controllers"],
	[leaseOf(LeaseKind.SHARDS), "no shard"],
	[leaseOf(LeaseKind.SHARDS, "", [7]), "shard 7"],
	[leaseOf(LeaseKind.SHARDS, "", [0, 1, 2, 7, 9, 10]), "shards 0–2, 7, 9–10"],
	[leaseOf(LeaseKind.CLIENT), "client"],
	[leaseOf(LeaseKind.SERVER), "server"],
	// Of a later version of the server.
	[leaseOf(99 as LeaseKind), "server"],
])("says what a lease is for: %#", (lease, text) => {
	expect(leaseUse(lease)).toBe(text);
});

it("finds the controller of a lease, if it has one", () => {
	const controllers = new Set(["prober", "controllers"]);
	const of = (kind: LeaseKind, name: string) => controllerOf(leaseOf(kind, name), controllers);
	expect(of(LeaseKind.SHARDS, "controllers-prober")).toBe("prober");
	expect(of(LeaseKind.SHARDS, "controllers-other")).toBe("");
	expect(of(LeaseKind.SINGLETONS, "controllers")).toBe("");
	expect(of(LeaseKind.CLIENT, "controllers-prober")).toBeUndefined();
	expect(of(LeaseKind.SERVER, "peering-imports")).toBeUndefined();
});
