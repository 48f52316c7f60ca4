import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePortsInARow } from "@plinth/test-support/ports";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { firstRegions, planOf } from "../src/plan.ts";
import { Regions } from "../src/regions.ts";
import { Api, type Json } from "./api.fixture.ts";
import { eventually } from "./eventually.fixture.ts";
import { deployment, device, idOf, project, rack, to } from "./vocabulary.fixture.ts";

const dataDirectory = mkdtempSync(join(tmpdir(), "plinth-regions-"));
const basePort = await freePortsInARow(150);
const regions = new Regions({
	dataDirectory,
	basePort,
	versions: { devices: "v1" },
});
const api = (name: string) => new Api(regions.get(name).address);
const west = { iam: api("iam-us-west2"), devices: api("devices-us-west2") };
const north = { iam: api("iam-eu-north1"), devices: api("devices-eu-north1") };
const gone = (value: unknown) => value === undefined;

const projectId = (name: string) => idOf("iam", "v1", "Project", name);
const rackId = (name: string) => idOf("devices", "v1", "Rack", name);
const deviceId = (name: string, version = "v1") => idOf("devices", version, "Device", name);

beforeAll(() => regions.start());
afterAll(async () => {
	await regions.stop();
	rmSync(dataDirectory, { recursive: true });
});

describe("the walk-through of the README", () => {
	it("shows every deployment at both meta deployments together", async () => {
		const type = { group: "meta", groupVersion: "v1", kind: "Deployment" };
		const all = await Promise.all(
			["meta-us-west2", "meta-eu-north1"].map((name) => api(name).list(type)),
		);
		const names = all.flat().map(({ id }) => id.name);
		expect(names.sort()).toEqual([...regions.servers.keys()].sort());
	});

	it("blocks, in the same region and in another one", async () => {
		await west.iam.write(project("acme"));
		await west.devices.write(rack("r1", { project: to("acme") }));
		await north.devices.write(rack("r2", { project: to("acme", "us-west2") }));
		await expect(west.iam.delete(projectId("acme"))).rejects.toMatchObject({
			code: "failed_precondition",
			message: expect.stringMatching(/devices\.Rack default\/default\/r[12]/),
		});
		await expect(west.devices.write(rack("r3", { project: to("nowhere") }))).rejects.toMatchObject({
			code: "failed_precondition",
		});
		await north.devices.delete(rackId("r2"));
		await west.devices.delete(rackId("r1"));
		await west.iam.delete(projectId("acme"));
		expect(await west.iam.read(projectId("acme"))).toBeUndefined();
	});

	it("cascades and unsets, across regions", async () => {
		await west.iam.write(project("lab"));
		await west.devices.write(rack("r4", {}));
		await north.devices.write(
			device("d1", { model: "a", rack: to("r4", "us-west2"), lentTo: to("lab", "us-west2") }),
		);
		await west.devices.write(device("d2", { model: "b", standby: to("d1", "eu-north1") }));
		await west.iam.delete(projectId("lab"));
		const unset = await eventually(
			() => north.devices.read(deviceId("d1")),
			(found) => found?.data.lentTo === undefined,
		);
		expect(unset?.data).toMatchObject({ model: "a", rack: { name: "r4" } });
		await eventually(() => west.iam.read(projectId("lab")), gone);
		await west.devices.delete(rackId("r4"));
		await eventually(() => north.devices.read(deviceId("d1")), gone);
		const left = await eventually(
			() => west.devices.read(deviceId("d2")),
			(found) => found?.data.standby === undefined,
		);
		expect(left?.data).toMatchObject({ model: "b" });
		await eventually(() => west.devices.read(rackId("r4")), gone);
	});

	it("waits for a region that is down, and names it", async () => {
		await west.iam.write(project("far"));
		await north.devices.write(device("d3", { lentTo: to("far", "us-west2") }));
		await regions.get("devices-eu-north1").stop("SIGKILL");
		await expect(west.iam.delete(projectId("far"))).rejects.toMatchObject({
			message: expect.stringContaining("devices in eu-north1"),
		});
		regions.get("devices-eu-north1").start();
		await regions.get("devices-eu-north1").ready();
		await eventually(
			() => west.iam.delete(projectId("far")).catch((failure: Error) => failure.message),
			(result) => typeof result !== "string",
		);
		await eventually(() => west.iam.read(projectId("far")), gone);
		expect((await north.devices.read(deviceId("d3")))?.data.lentTo).toBeUndefined();
	});

	it("switches a version, and rewrites owner references in another service", async () => {
		const owner = await west.devices.write(device("d4", { model: "c" }));
		const key = (region: string): Json => ({
			id: idOf("iam", "v1", "AccessKey", "d4-key"),
			data: { "@type": "type.googleapis.com/regions.iam.v1.AccessKey", fingerprint: "f" },
			ownerReferences: [{ ...deviceId("d4"), uid: owner.id.uid, region }],
		});
		await north.iam.write(key("us-west2"));
		const more = Array.from({ length: 20 }, (_, i) => idOf("iam", "v1", "AccessKey", `more-${i}`));
		for (const id of more) {
			await west.iam.write({ ...key(""), id });
		}
		const meta = await Promise.all(
			["meta-us-west2", "meta-eu-north1"].map(async (name) => ({
				api: api(name),
				found: await api(name).read(deployment("devices-us-west2")),
			})),
		);
		const keeper = meta.find(({ found }) => found !== undefined);
		expect(keeper?.found?.data).toMatchObject({ currentVersion: "v1" });
		if (keeper?.found !== undefined) {
			const { found } = keeper;
			await keeper.api.write({ ...found, data: { ...found.data, wantedVersion: "v2" } });
			// Half-way through, perhaps.
			await regions.get("iam-us-west2").stop("SIGKILL");
			regions.get("iam-us-west2").start();
			await eventually(
				() => keeper.api.read(deployment("devices-us-west2")),
				(now) => now?.data.currentVersion === "v2",
			);
		}
		const rewritten = await eventually(
			() => north.iam.read(idOf("iam", "v1", "AccessKey", "d4-key")),
			(found) => JSON.stringify(found?.ownerReferences).includes('"v2"'),
		);
		expect(rewritten?.ownerReferences).toMatchObject([{ uid: owner.id.uid, name: "d4" }]);
		await regions.get("iam-us-west2").ready();
		for (const id of more) {
			await eventually(
				() => west.iam.read(id),
				(found) => JSON.stringify(found?.ownerReferences).includes('"v2"'),
			);
		}
	});

	it("deletes what an owner in another service and region owned", async () => {
		await west.devices.delete(deviceId("d4"));
		await eventually(() => north.iam.read(idOf("iam", "v1", "AccessKey", "d4-key")), gone, 150_000);
		await eventually(() => west.devices.read(deviceId("d4")), gone);
	});

	it("adds a region without a restart, and releases its references when its deployment is deleted", async () => {
		const all = planOf(basePort, [...firstRegions, "us-east1"]);
		const plan = all.find(({ name }) => name === "devices-us-east1");
		if (plan === undefined) {
			throw new Error("the plan has each service in each region");
		}
		const east = regions.add(plan);
		east.start();
		await east.ready();
		await west.iam.write(project("new"));
		await new Api(east.address).write(rack("r5", { project: to("new", "us-west2") }));
		await east.stop("SIGKILL");
		await expect(west.iam.delete(projectId("new"))).rejects.toMatchObject({
			message: expect.stringContaining("devices in us-east1"),
		});
		for (const name of ["meta-us-west2", "meta-eu-north1"]) {
			await api(name).delete(deployment("devices-us-east1"));
		}
		await west.iam.delete(projectId("new"));
		expect(await west.iam.read(projectId("new"))).toBeUndefined();
	});
});
