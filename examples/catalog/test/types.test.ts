import { Code, ConnectError } from "@connectrpc/connect";
import { idOf } from "@plinth/resource";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { HealthCheck, Service, ServiceEndpoints, Workload } from "../src/index.ts";
import { TestCatalog } from "./catalog.fixture.ts";

let catalog: TestCatalog;

beforeAll(async () => {
	catalog = await TestCatalog.start();
	await catalog.workload("w");
});

afterAll(() => catalog[Symbol.asyncDispose]());

/** What a write is refused with. */
async function refusal(write: Promise<unknown>): Promise<unknown> {
	const error = await write.catch((reason: unknown) => reason);
	return error instanceof ConnectError && error.code === Code.InvalidArgument
		? error.rawMessage
		: error;
}

const owner = idOf(Workload, "w");
const probe = { case: "http", value: { portName: "http" } } as const;

describe("a service", () => {
	it.each([
		[{ portName: "http" }, "resource.data.workload_prefix is required"],
		[
			{ workloadPrefix: "Web", portName: "http" },
			"resource.data.workload_prefix invalid: must be lower-case",
		],
		[{ workloadPrefix: "w" }, "resource.data.port_name is required"],
		[
			{ workloadPrefix: "w", portName: "Http" },
			'resource.data.port_name invalid: "Http" must consist',
		],
	])("%j is refused", async (data, message) => {
		expect(await refusal(catalog.write(Service, "s", data))).toContain(message);
	});
});

describe("a workload", () => {
	it.each([
		[{ ports: { http: 1 } }, "resource.data.host is required"],
		[{ host: "a b", ports: { http: 1 } }, 'resource.data.host invalid: "a b"'],
		[{ host: "a" }, "resource.data.ports is required"],
		[{ host: "a", ports: { http: 0 } }, 'resource.data.ports["http"] invalid: 0'],
		[{ host: "a", ports: { http: 65_536 } }, 'resource.data.ports["http"] invalid: 65536'],
		[{ host: "a", ports: { "": 1 } }, "resource.data.ports is required"],
	])("%j is refused", async (data, message) => {
		expect(await refusal(catalog.write(Workload, "bad", data))).toContain(message);
	});

	it.each(["::1", "10.0.0.1", "a.example.com", "localhost"])("may be at %s", async (host) => {
		await catalog.write(Workload, "good", { host, ports: { http: 65_535 } });
	});
});

describe("a health check", () => {
	it("has defaults for what it does not say", async () => {
		await catalog.write(HealthCheck, "c", { probe }, owner);
		const [check] = await catalog.all(HealthCheck);
		expect(check?.data).toMatchObject({
			probe: { case: "http", value: { portName: "http", path: "/" } },
			intervalMs: 10_000,
			timeoutMs: 1_000,
		});
	});

	it.each([
		[{}, "resource.data.http or resource.data.tcp is required"],
		[{ probe: { case: "tcp", value: {} } }, "resource.data.tcp.port_name is required"],
		[
			{ probe: { case: "http", value: { portName: "http", path: "x" } } },
			"resource.data.http.path invalid",
		],
		[{ probe, intervalMs: 99 }, "resource.data.interval_ms invalid: 99"],
		[{ probe, intervalMs: 500, timeoutMs: 501 }, "resource.data.timeout_ms invalid: 501"],
	] as const)("%j is refused", async (data, message) => {
		expect(await refusal(catalog.write(HealthCheck, "bad", data, owner))).toContain(message);
	});

	it("is refused without a workload", async () => {
		const message = "resource.owner is required: the workload that the check probes";
		const service = idOf(Service, "s");
		await catalog.service("s", "s");
		expect(await refusal(catalog.write(HealthCheck, "bad", { probe }))).toBe(message);
		expect(await refusal(catalog.write(HealthCheck, "bad", { probe }, service))).toBe(message);
	});
});

describe("service endpoints", () => {
	it("are refused without the service of their name", async () => {
		await catalog.service("s", "s");
		const write = catalog.write(ServiceEndpoints, "other", {}, idOf(Service, "s"));
		expect(await refusal(write)).toContain("it must be the service of the same name");
	});
});
