import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { Deployment } from "@plinth/db-constraint";
import { NamespaceSchema } from "@plinth/proto";
import { RegionalCopyService } from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
import { idOf, Namespace, newUlid, resourceOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { Artist, artist, musicModule, Tour } from "../../testdata/music.ts";
import { outcome, transportWith } from "../callers.fixture.ts";
import { defineModule } from "../module/index.ts";
import { documentedMetrics, metricsWith } from "../operations/metrics-with-prefix.fixture.ts";
import { credential } from "./started-deployment.fixture.ts";
import { patiently, startTwoRegions, TestRegion } from "./two-regions.fixture.ts";

describe("copies of another region", { timeout: 300_000 }, () => {
	it("appear where a policy names the region, and follow each change", async () => {
		const { west, east } = await startTwoRegions();
		await west.write("miles", "jazz");
		await west.write("nico", "rock");
		await east.write("miles", "local");
		await west.partitionPolicy("default", "r1", "r2");
		await expect
			.poll(() => east.artists(), patiently)
			.toEqual([":default/miles=local", "r1:default/miles=jazz", "r1:default/nico=rock"]);
		await west.write("miles", "cool");
		await west.delete("nico");
		await west.write("otis", "soul");
		await expect
			.poll(() => east.artists("r1"), patiently)
			.toEqual(["r1:default/miles=cool", "r1:default/otis=soul"]);
		expect(await east.artists("")).toEqual([":default/miles=local"]);
		expect(await west.artists()).toEqual([":default/miles=cool", ":default/otis=soul"]);
		await expect
			.poll(() => east.report("r1"), patiently)
			.toMatchObject({
				...{ state: "Streaming", message: "", lagMs: 0n, leftOutTotal: 0n },
				copies: { "music.v1.Artist": 2n },
			});
	});

	it("are held by both regions if both have the policy, and are not copied back", async () => {
		const { west, east } = await startTwoRegions();
		await west.write("miles", "jazz");
		await east.write("nico", "rock");
		for (const region of [west, east]) {
			await region.partitionPolicy("default", "r1", "r2");
		}
		await expect
			.poll(() => east.artists(), patiently)
			.toEqual([":default/nico=rock", "r1:default/miles=jazz"]);
		await expect
			.poll(() => west.artists(), patiently)
			.toEqual([":default/miles=jazz", "r2:default/nico=rock"]);
	});

	it("can't be written, and name the region where their originals are", async () => {
		const { west, east } = await startTwoRegions();
		await west.write("miles", "jazz");
		await west.partitionPolicy("default", "r2");
		await expect.poll(() => east.artists("r1"), patiently).toHaveLength(1);
		const id = { ...idOf(Artist, "miles"), region: "r1" };
		const { resource } = await east.server.client.read({ id });
		expect(resource).toMatchObject({
			id: { name: "miles", region: "r1" },
			origin: { region: "r1", partition: "default", path: [], peering: "" },
		});
		const refused = /^FailedPrecondition: .* is read-only here: write it in its region, r1$/;
		const { client } = east.server;
		expect(await outcome(client.delete({ id }))).toMatch(refused);
		expect(await outcome(client.write({ resource: { ...artist("miles"), id } }))).toMatch(refused);
	});

	it("are exactly those that a policy names, and go when it does", async () => {
		const { west, east } = await startTwoRegions();
		await west.namespacePolicy("shop", "r2");
		await west.namespacePolicy("private");
		await west.write("miles", "jazz", "shop");
		await west.write("miles", "jazz", "private");
		await west.write("miles", "jazz");
		await expect.poll(() => east.artists("*"), patiently).toEqual(["r1:shop/miles=jazz"]);
		// More than the namespace: what it has stays.
		await west.partitionPolicy("default", "r2");
		await expect
			.poll(() => east.artists("*"), patiently)
			.toEqual(["r1:default/miles=jazz", "r1:private/miles=jazz", "r1:shop/miles=jazz"]);
		// Only the namespace again.
		await west.partitionPolicy("default", "r3");
		await expect.poll(() => east.artists("*"), patiently).toEqual(["r1:shop/miles=jazz"]);
		await east.write("miles", "local");
		await west.namespacePolicy("shop");
		await expect.poll(() => east.artists("*"), patiently).toEqual([":default/miles=local"]);
		// Nothing is left of it, neither a record nor a partition.
		await expect.poll(() => east.report("r1"), patiently).toBe(undefined);
		expect(await outcome(east.server.client.read({ id: idOf(Namespace, "shop") }))).toMatch(
			/^NotFound/,
		);
	});

	it("of types that this region lacks are left out and named", async () => {
		const { west, east } = await startTwoRegions({
			west: { modules: [musicModule(), defineModule({ name: "tours", types: [Tour] })] },
		});
		await west.write("miles", "jazz");
		await west.server.client.write({ resource: resourceOf(Tour, { id: idOf(Tour, "world") }) });
		await west.partitionPolicy("default", "r2");
		await expect
			.poll(() => east.report("r1"), patiently)
			.toMatchObject({
				...{ state: "Streaming", leftOutTotal: 1n, copies: { "music.v1.Artist": 1n } },
				leftOut: [{ type: "tours.v1.Tour", reason: "resource type tours.v1.Tour not registered" }],
			});
	});

	it("are removed when the deployment was deleted", async () => {
		const { meta, west, east } = await startTwoRegions();
		await west.write("miles", "jazz");
		await east.write("nico", "rock");
		await west.partitionPolicy("default", "r2");
		await expect.poll(() => east.artists("r1"), patiently).toHaveLength(1);
		await meta.client.delete({ id: idOf(Deployment, "music-r1") });
		await expect(west.server.ended).rejects.toThrow("deployment music-r1 was deleted");
		await expect.poll(() => east.artists(), patiently).toEqual([":default/nico=rock"]);
		expect(await east.report("r1")).toBe(undefined);
	});

	it("come from each of several regions", async () => {
		const { file, metaAddress, west, east } = await startTwoRegions();
		const north = await TestRegion.start("r3", { file, metaAddress });
		for (const region of [west, east, north]) {
			await region.write("miles", region.region);
		}
		await west.partitionPolicy("default", "r3");
		await east.partitionPolicy("default", "r3");
		await expect
			.poll(() => north.artists(), patiently)
			.toEqual([":default/miles=r3", "r1:default/miles=r1", "r2:default/miles=r2"]);
		expect(await west.artists()).toEqual([":default/miles=r1"]);
	});
});

describe("the metrics of regional copies", { timeout: 300_000 }, () => {
	it("tell of both regions what is copied, and how far it is behind", async () => {
		const { west, east } = await startTwoRegions();
		const prefix = "plinth_regional_";
		await west.write("miles", "jazz");
		expect(await metricsWith(prefix, east.server)).toEqual({});
		await west.partitionPolicy("default", "r2");
		const current = {
			import_state: { "r1 default Streaming": 1 },
			import_lag_seconds: { "r1 default": 0 },
			import_age_seconds: { "r1 default": expect.any(Number) },
			import_copies: { "r1 default music.v1.Artist": 1 },
			import_left_out: { "r1 default": 0 },
			import_messages_total: { "r1 default": expect.any(Number) },
		};
		await expect.poll(() => metricsWith(prefix, east.server), patiently).toEqual(current);
		const exported = {
			export_streams: { "r2 default": 1 },
			export_messages_total: { "r2 default": expect.any(Number) },
			export_unacknowledged: { "r2 default": 0 },
			export_lag_seconds: { "r2 default": 0 },
		};
		await expect.poll(() => metricsWith(prefix, west.server), patiently).toEqual(exported);
		expect([...Object.keys(current), ...Object.keys(exported)].sort()).toEqual(
			documentedMetrics(prefix),
		);
	});
});

describe("a policy", () => {
	it("is refused with the region that is wrong", async () => {
		const { west } = await startTwoRegions();
		expect(await outcome(west.partitionPolicy("default", "r2", "R3"))).toBe(
			'InvalidArgument: copies.regions[1] invalid: must consist of lower-case letters, digits and hyphens, and start and end with a letter or digit, got: "R3"',
		);
		const id = idOf(Namespace, "shop");
		const data = create(NamespaceSchema, { copies: { regions: ["r2", "r2"] } });
		expect(
			await outcome(west.server.client.write({ resource: resourceOf(Namespace, { id, data }) })),
		).toBe("InvalidArgument: copies.regions[1] invalid: r2 is named twice");
	});
});

describe("what a region offers", () => {
	it("is shown only to callers with the credential that name themselves and this deployment", async () => {
		const { meta, west } = await startTwoRegions();
		await west.write("miles", "jazz");
		await west.partitionPolicy("default", "r2");
		const known = {
			...{ protocolVersion: 1, service: "music", region: "r2" },
			toUid: await west.uid(meta),
		};
		const codes = async (token: string, change: Partial<typeof known>) => {
			const client = createClient(RegionalCopyService, transportWith(west.internal, token));
			const route = { ...known, ...change };
			const stream = { export: "default" };
			const calls = [
				client.listOffers({ route }),
				client.getOffer({ route, partition: "default" }),
				client.acknowledgeOffer({ route, streamId: "x", sequence: 1n }),
				Array.fromAsync(client.streamOffer({ route, stream })),
			];
			const failures = await Promise.all(calls.map((call) => call.then(() => "ok", codeOf)));
			return [...new Set(failures)];
		};
		expect(await codes("", {})).toEqual(["Unauthenticated"]);
		expect(await codes("another-credential-of-nobody", {})).toEqual(["Unauthenticated"]);
		expect(await codes(credential, { protocolVersion: 2 })).toEqual(["FailedPrecondition"]);
		expect(await codes(credential, { service: "tours" })).toEqual(["FailedPrecondition"]);
		expect(await codes(credential, { region: "r1" })).toEqual(["FailedPrecondition"]);
		expect(await codes(credential, { region: "R2" })).toEqual(["InvalidArgument"]);
		expect(await codes(credential, { toUid: newUlid(systemRuntime) })).toEqual(["Unavailable"]);
		expect(await codes(credential, { toUid: "" })).toEqual(["Unavailable"]);
		const client = createClient(RegionalCopyService, transportWith(west.internal, credential));
		expect(await client.listOffers({ route: known })).toMatchObject({
			partitions: ["default"],
			omitted: 0,
		});
		const unnamed = { ...known, region: "r3" };
		expect((await client.listOffers({ route: unnamed })).partitions).toEqual([]);
		const offer = client.getOffer({ route: unnamed, partition: "default" });
		expect(await outcome(offer)).toBe(
			"NotFound: no policy of partition default names the region r3",
		);
		const malformed = client.getOffer({ route: known, partition: "*" });
		expect(await outcome(malformed)).toMatch(/^InvalidArgument: partition invalid/);
	});

	it("is not served by the public listener, nor by meta deployments", async () => {
		const { meta, metaAddress, west } = await startTwoRegions();
		for (const [address, code] of [
			[metaAddress, "Unimplemented"],
			[meta.address, "Unimplemented"],
			[west.server.address, "Unimplemented"],
		] as const) {
			const client = createClient(RegionalCopyService, transportWith(address, credential));
			expect(await client.listOffers({}).then(() => "ok", codeOf)).toBe(code);
		}
	});
});

function codeOf(failure: unknown): string {
	return Code[ConnectError.from(failure).code];
}
