import { idOf } from "@plinth/resource";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { HealthCheck, Service, ServiceEndpoints, Workload } from "../src/index.ts";
import { TestCatalog } from "./catalog.fixture.ts";

/** One thing that someone does to the catalog, or to the network. */
type Step = (catalog: TestCatalog) => unknown;

const services = ["s", "t"] as const;
const prefixes = ["a", "ab", "b", "abc"] as const;
const workloads = ["a", "ab-1", "abc", "b-2"] as const;
const hosts = ["x.test", "y.test"] as const;
const ports = { http: 80, admin: 81 } as const;

const service = fc.constantFrom(...services);
const workload = fc.constantFrom(...workloads);
const port = fc.constantFrom("http", "admin");

const step: fc.Arbitrary<Step> = fc.oneof(
	fc.tuple(service, fc.constantFrom(...prefixes), port).map(
		([name, prefix, portName]): Step =>
			(c) =>
				c.service(name, prefix, portName),
	),
	service.map(
		(name): Step =>
			(c) =>
				c.delete(Service, name),
	),
	fc
		.tuple(
			workload,
			fc.constantFrom(...hosts),
			fc.subarray(["http", "admin"] as const, { minLength: 1 }),
		)
		.map(
			([name, host, names]): Step =>
				(c) =>
					c.workload(name, {
						host,
						ports: Object.fromEntries(names.map((each) => [each, ports[each]])),
					}),
		),
	workload.map(
		(name): Step =>
			(c) =>
				c.delete(Workload, name),
	),
	// Without the workload, the check is refused.
	fc.tuple(workload, port).map(
		([name, portName]): Step =>
			(c) =>
				c.check(`c-${name}-${portName}`, name, portName).catch(() => {}),
	),
	fc.tuple(workload, port).map(
		([name, portName]): Step =>
			(c) =>
				c.delete(HealthCheck, `c-${name}-${portName}`),
	),
	service.map(
		(name): Step =>
			(c) =>
				c.delete(ServiceEndpoints, name),
	),
	service.map(
		(name): Step =>
			(c) =>
				c
					.write(ServiceEndpoints, name, { endpoints: [{ host: "evil" }] }, idOf(Service, name))
					.catch(() => {}),
	),
	fc.tuple(fc.constantFrom(...hosts), port, fc.boolean()).map(
		([host, portName, isUp]): Step =>
			(c) => {
				const address = `http://${host}:${ports[portName === "http" ? "http" : "admin"]}/`;
				if (isUp) {
					c.up.add(address);
				} else {
					c.up.delete(address);
				}
			},
	),
	fc.nat(700).map(
		(ms): Step =>
			(c) =>
				c.advance(ms),
	),
);

/** The endpoints of all services, from what is declared and the network as it is: naive and whole. */
async function expected(catalog: TestCatalog): Promise<Record<string, readonly string[]>> {
	const allWorkloads = await catalog.all(Workload);
	const checks = await catalog.all(HealthCheck);
	const isHealthy = ({ resource, data }: (typeof allWorkloads)[number]) =>
		checks
			.filter((check) => check.resource.owner?.uid === resource.id?.uid)
			.every((check) => {
				const number = data.ports[check.data.probe.value?.portName ?? ""];
				return number !== undefined && catalog.up.has(`http://${data.host}:${number}/`);
			});
	const result: Record<string, readonly string[]> = {};
	for (const { resource, data } of await catalog.all(Service)) {
		result[resource.id?.name ?? ""] = allWorkloads
			.filter((each) => each.resource.id?.name.startsWith(data.workloadPrefix))
			.filter((each) => each.data.ports[data.portName] !== undefined && isHealthy(each))
			.map((each) => `${each.data.host}:${each.data.ports[data.portName]}`);
	}
	return result;
}

async function actual(catalog: TestCatalog): Promise<Record<string, readonly string[]>> {
	const result: Record<string, readonly string[]> = {};
	for (const { resource, data } of await catalog.all(ServiceEndpoints)) {
		result[resource.id?.name ?? ""] = data.endpoints.map(({ host, port: p }) => `${host}:${p}`);
	}
	return result;
}

describe("the catalog", () => {
	it("converges to what is declared and up, whatever was done to it", async () => {
		await fc.assert(
			fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
				await using catalog = await TestCatalog.start();
				for (const each of steps) {
					await each(catalog);
				}
				await catalog.advance(3_000);
				expect(await actual(catalog)).toEqual(await expected(catalog));
			}),
			{ numRuns: 60 },
		);
	});
});
