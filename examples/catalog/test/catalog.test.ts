import { Condition_State } from "@plinth/proto";
import { finalizersKey, idOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { HealthCheck, Service, ServiceEndpoints, Workload } from "../src/index.ts";
import { proberName } from "../src/probe/health.ts";
import { TestCatalog } from "./catalog.fixture.ts";

describe("the endpoints of a service", () => {
	it("are its workloads that have its port, by prefix and ordered by name", async () => {
		await using catalog = await TestCatalog.start();
		await catalog.workload("web-2");
		await catalog.workload("web-1", { ports: { http: 8080, admin: 9 } });
		await catalog.workload("web-portless", { ports: { admin: 9 } });
		await catalog.workload("we");
		await catalog.workload("other");
		await catalog.service("web", "web-");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual(["web-1.test:8080", "web-2.test:80"]);
	});

	it("are there, and empty, for a service without workloads", async () => {
		await using catalog = await TestCatalog.start();
		await catalog.service("web", "web-");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual([]);
	});

	it("follow workloads that come, move and go, and a prefix that changes", async () => {
		await using catalog = await TestCatalog.start();
		await catalog.service("web", "web-");
		await catalog.workload("web-1");
		await catalog.workload("api-1");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual(["web-1.test:80"]);

		await catalog.workload("web-1", { host: "elsewhere.test" });
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual(["elsewhere.test:80"]);

		await catalog.service("web", "api-");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual(["api-1.test:80"]);

		await catalog.delete(Workload, "api-1");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual([]);
	});

	it("come back when someone edits or deletes them", async () => {
		await using catalog = await TestCatalog.start();
		await catalog.service("web", "web-");
		await catalog.workload("web-1");
		await catalog.settle();
		const owner = idOf(Service, "web");

		await catalog.write(ServiceEndpoints, "web", { endpoints: [{ host: "evil.test" }] }, owner);
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual(["web-1.test:80"]);

		await catalog.delete(ServiceEndpoints, "web");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual(["web-1.test:80"]);
	});

	it("go with their service, and belong to the new one of that name", async () => {
		await using catalog = await TestCatalog.start();
		await catalog.workload("web-1");
		await catalog.service("web", "web-");
		await catalog.settle();
		await catalog.delete(Service, "web");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toBeUndefined();

		await catalog.service("web", "web-");
		await catalog.delete(Service, "web");
		const { id } = await catalog.service("web", "web-");
		await catalog.settle();
		const [endpoints] = await catalog.all(ServiceEndpoints);
		expect(endpoints?.resource.owner?.uid).toBe(id?.uid);
		expect(await catalog.endpoints("web")).toEqual(["web-1.test:80"]);
	});

	it("are not written while nothing changes", async () => {
		await using catalog = await TestCatalog.start();
		catalog.up.add("http://web-1.test:80/");
		await catalog.service("web", "web-");
		await catalog.workload("web-1");
		await catalog.check("web-1", "web-1");
		await catalog.advance(2_000);
		const before = await catalog.client.list({ type: { ...Service.type }, tenancy: {} });
		const probes = catalog.probed.length;
		await catalog.advance(10_000);
		const after = await catalog.client.list({ type: { ...Service.type }, tenancy: {} });
		expect(catalog.probed.length).toBeGreaterThan(probes);
		expect(after.version).toBe(before.version);
	});
});

describe("a checked workload", () => {
	it("is an endpoint only once its check has passed, and as long as it passes", async () => {
		await using catalog = await TestCatalog.start();
		const address = "http://web-1.test:80/";
		await catalog.service("web", "web-");
		await catalog.workload("web-1");
		await catalog.check("web-1", "web-1");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual([]);

		catalog.up.add(address);
		await catalog.advance(1_000);
		expect(await catalog.endpoints("web")).toEqual(["web-1.test:80"]);

		catalog.up.delete(address);
		await catalog.advance(1_000);
		expect(await catalog.endpoints("web")).toEqual([]);
	});

	it("needs all of its checks", async () => {
		await using catalog = await TestCatalog.start();
		catalog.up.add("http://web-1.test:80/");
		await catalog.service("web", "web-");
		await catalog.workload("web-1", { ports: { http: 80, admin: 9 } });
		await catalog.check("one", "web-1");
		await catalog.check("two", "web-1", "admin");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual([]);

		await catalog.delete(HealthCheck, "two");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual(["web-1.test:80"]);
	});

	it("does not count a check of an earlier workload of its name", async () => {
		await using catalog = await TestCatalog.start();
		await catalog.service("web", "web-");
		await catalog.workload("web-1");
		const { id } = await catalog.check("web-1", "web-1");
		const { resource } = await catalog.client.read({ ...(id && { id }) });
		if (resource === undefined) {
			throw new Error("no check");
		}
		// Keeps the check when its owner goes.
		resource.metadata[finalizersKey] = "test";
		await catalog.client.write({ resource });
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual([]);

		await catalog.delete(Workload, "web-1");
		await catalog.workload("web-1");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual(["web-1.test:80"]);
		const [check] = await catalog.all(HealthCheck);
		expect(check?.resource.status[proberName]?.conditions[0]).toMatchObject({
			state: Condition_State.UNKNOWN,
			reason: "NoWorkload",
		});
	});

	it("fails if the target does not respond in time", async () => {
		await using catalog = await TestCatalog.start();
		const address = "http://web-1.test:80/";
		catalog.up.add(address);
		await catalog.service("web", "web-");
		await catalog.workload("web-1");
		await catalog.check("web-1", "web-1");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual(["web-1.test:80"]);

		catalog.silent.add(address);
		await catalog.advance(1_000 + 500);
		expect(await catalog.endpoints("web")).toEqual([]);
		const [check] = await catalog.all(HealthCheck);
		expect(check?.resource.status[proberName]?.conditions[0]).toMatchObject({
			state: Condition_State.FALSE,
			reason: "TimedOut",
			message: "http://web-1.test:80/ did not respond within 500 ms",
		});
	});

	it("is not taken for healthy where it moved to, before that was probed", async () => {
		await using catalog = await TestCatalog.start();
		catalog.up.add("http://web-1.test:80/");
		catalog.silent.add("http://elsewhere.test:80/");
		await catalog.service("web", "web-");
		await catalog.workload("web-1");
		await catalog.check("web-1", "web-1");
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual(["web-1.test:80"]);

		await catalog.workload("web-1", { host: "elsewhere.test" });
		await catalog.settle();
		expect(await catalog.endpoints("web")).toEqual([]);

		catalog.silent.clear();
		catalog.up.add("http://elsewhere.test:80/");
		await catalog.advance(1_500);
		expect(await catalog.endpoints("web")).toEqual(["elsewhere.test:80"]);
	});

	it("is probed at once when its check changes, and then at the check's interval", async () => {
		await using catalog = await TestCatalog.start();
		await catalog.workload("web-1");
		await catalog.check("web-1", "web-1");
		await catalog.settle();
		expect(catalog.probed).toHaveLength(1);
		await catalog.check("web-1", "web-1");
		await catalog.settle();
		expect(catalog.probed).toHaveLength(2);
		await catalog.clock.advanceAsync(5_000);
		expect(catalog.probed).toHaveLength(7);
	});

	it("that has no such port leaves its check unknown and unprobed", async () => {
		await using catalog = await TestCatalog.start();
		await catalog.workload("web-1");
		await catalog.check("web-1", "web-1", "admin");
		await catalog.advance(10_000);
		expect(catalog.probed).toEqual([]);
		const [check] = await catalog.all(HealthCheck);
		expect(check?.resource.status[proberName]?.conditions[0]).toMatchObject({
			state: Condition_State.UNKNOWN,
			reason: "NoPort",
		});
	});

	it("takes its checks along when it is deleted", async () => {
		await using catalog = await TestCatalog.start();
		await catalog.workload("web-1");
		await catalog.check("web-1", "web-1");
		await catalog.settle();
		await catalog.delete(Workload, "web-1");
		await catalog.settle();
		expect(await catalog.all(HealthCheck)).toEqual([]);
	});
});
