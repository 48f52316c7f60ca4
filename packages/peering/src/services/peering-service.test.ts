import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { ImportRecordSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { PeeringReport_Role } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { systemRuntime } from "@plinth/runtime";
import { decorateBackend } from "@plinth/storage";
import { describe, expect, it, vi } from "vitest";
import { PeeringRecords } from "../records/peering-records.ts";
import { TestNetwork } from "../two-clusters.fixture.ts";

describe("a list of peerings", () => {
	it("reads nothing for a caller who is not known, also if there is no Peering", async () => {
		let lists = 0;
		const west = await new TestNetwork().cluster("west", {
			beforeRead() {
				throw new ConnectError("who are you", Code.Unauthenticated);
			},
			decorate: (backend) =>
				decorateBackend(backend, {
					list(query, options) {
						lists += 1;
						return backend.list(query, options);
					},
				}),
		});
		await expect(west.api.listPeerings({})).rejects.toMatchObject({ code: Code.Unauthenticated });
		expect(lists).toBe(0);
	});

	it("has the Imports whose Peering does not exist, for callers who could read it", async () => {
		let denied = false;
		const west = await new TestNetwork().cluster("west", {
			beforeRead(name) {
				if (name === "nowhere" && denied) {
					throw new ConnectError("no", Code.PermissionDenied);
				}
			},
		});
		west.run();
		await west.import({ peer: "nowhere", export: "goods", partition: "copies" });
		const missing = {
			...{ name: "nowhere", role: PeeringReport_Role.IMPORTS, isEstablished: false },
			imports: [
				{
					...{ name: "copies", state: "PeeringMissing" },
					message: expect.stringMatching(/^there is no peering nowhere here: run plinth peering/),
				},
			],
		};
		await vi.waitFor(
			async () => expect((await west.api.listPeerings({})).peerings).toMatchObject([missing]),
			{ timeout: 300_000, interval: 20 },
		);
		denied = true;
		expect((await west.api.listPeerings({})).peerings).toEqual([]);
		await west.api.createToken({ name: "nowhere" });
		denied = false;
		expect((await west.api.listPeerings({})).peerings).toMatchObject([{ name: "nowhere" }]);
	}, 300_000);

	it("has what the caller may read, and fails if that can't be told", async () => {
		let code = Code.PermissionDenied;
		const west = await new TestNetwork().cluster("west", {
			beforeRead(name) {
				if (name === "north") {
					throw new ConnectError("no", code);
				}
			},
		});
		await west.api.createToken({ name: "east" });
		await west.api.createToken({ name: "north" });
		expect((await west.api.listPeerings({})).peerings).toMatchObject([{ name: "east" }]);
		code = Code.Unavailable;
		await expect(west.api.listPeerings({})).rejects.toMatchObject({ code });
	});

	it("has the copies of other regions, of the partitions that the caller may read", async () => {
		const west = await new TestNetwork().cluster("west", {
			beforeRead(name) {
				if (name === "secret") {
					throw new ConnectError("no", Code.PermissionDenied);
				}
			},
		});
		const records = new PeeringRecords(west.stored, systemRuntime);
		for (const [region, partition] of [
			["us-west2", "shop"],
			["us-west2", "default"],
			["us-west2", "secret"],
			["eu-west1", "secret"],
			["eu-west1", "shop"],
			["us-east1", "secret"],
		] as const) {
			const importUid = `${region}-${partition}`;
			const state = "Unreachable";
			const record = create(ImportRecordSchema, { importUid, region, partition, state });
			await west.stored.commit([records.put("regional", importUid, record)]);
		}
		const role = PeeringReport_Role.REGION;
		const unreachable = (partition: string) => ({
			...{ partition, state: "Unreachable", lagMs: -1n, ageMs: -1n },
		});
		expect((await west.api.listPeerings({})).peerings).toMatchObject([
			{ name: "eu-west1", role, imports: [unreachable("shop")] },
			{ name: "us-west2", role, imports: [unreachable("default"), unreachable("shop")] },
		]);
	});
});
