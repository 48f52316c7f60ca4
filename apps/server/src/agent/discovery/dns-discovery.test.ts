import type { ServerTarget } from "@plinth/forwarding";
import { type Logger, silentLogger } from "@plinth/runtime";
import { FakeClock, seededRandom } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { discoverySource } from "./discovery-source.ts";
import { discoverByDns } from "./dns-discovery.ts";

/** Discovers servers by a resolver whose results the test sets. */
function start(text: string) {
	const source = discoverySource(text);
	if (source.kind !== "dns") {
		throw new Error(`${text} is no name`);
	}
	const clock = new FakeClock();
	const records = {
		addresses: ["10.0.0.2", "10.0.0.1"] as readonly string[] | Error,
		services: [] as readonly { readonly host: string; readonly port: number }[],
	};
	const lookups: string[] = [];
	const times: number[] = [];
	const applied: (readonly ServerTarget[])[] = [];
	const logged: string[] = [];
	const logger: Logger = {
		...silentLogger,
		warn: (_, message) => logged.push(message),
		info: (_, message) => logged.push(message),
	};
	const discovery = discoverByDns(source, {
		...{ clock, logger, random: seededRandom(1) },
		resolver: {
			addresses: async (name) => {
				lookups.push(name);
				times.push(clock.monotonic());
				if (records.addresses instanceof Error) {
					throw records.addresses;
				}
				return records.addresses;
			},
			services: async () => records.services,
		},
		apply: (servers) => applied.push(servers),
	});
	return { clock, records, lookups, times, applied, logged, discovery };
}

describe("servers in DNS", () => {
	it("are all addresses of a name, looked up again every few seconds", async () => {
		const { clock, records, lookups, times, applied, discovery } = start("dns:servers.example:80");
		await clock.advanceAsync(0);
		expect(applied).toEqual([
			[{ address: "http://10.0.0.1:80" }, { address: "http://10.0.0.2:80" }],
		]);
		records.addresses = ["10.0.0.3", "fd00::1", "fe80::1%eth0"];
		await clock.advanceAsync(60_000);
		expect(applied.at(-1)).toEqual([
			{ address: "http://10.0.0.3:80" },
			{ address: "http://[fd00::1]:80" },
		]);
		expect(new Set(lookups)).toEqual(new Set(["servers.example"]));
		const pauses = times.slice(1).map((time, index) => time - (times[index] ?? 0));
		expect(Math.min(...pauses)).toBeGreaterThanOrEqual(4_000);
		expect(Math.max(...pauses)).toBeLessThanOrEqual(6_000);
		expect(new Set(pauses).size).toBeGreaterThan(3);
		discovery.close();
		const count = lookups.length;
		await clock.advanceAsync(60_000);
		expect(lookups).toHaveLength(count);
	});

	it("must have certificates of the name, as their addresses may change", async () => {
		const { clock, applied } = start("dns:https://servers.example");
		await clock.advanceAsync(0);
		expect(applied[0]?.[0]).toEqual({
			address: "https://10.0.0.1:7575",
			certificateName: "servers.example",
		});
	});

	it("are those of SRV records if the name begins with _", async () => {
		const { clock, records, applied } = start("dns:_plinth._tcp.example");
		records.services = [
			{ host: "b.example.", port: 2 },
			{ host: "a.example", port: 1 },
			{ host: "a/b", port: 1 },
		];
		await clock.advanceAsync(6_000);
		expect(applied.at(-1)).toEqual([
			{ address: "http://a.example:1" },
			{ address: "http://b.example:2" },
		]);
	});

	it.each([
		["that fails", new Error("queryA ESERVFAIL"), "queryA ESERVFAIL"],
		["without a result", [], "servers.example has no addresses"],
		[
			"with too many results",
			Array.from({ length: 101 }, (_, at) => `10.0.0.${at}`),
			"servers.example has 101 addresses: an agent forwards to at most 100 servers",
		],
	])("stay as they are after a lookup %s, which is logged once", async (_name, result, problem) => {
		const { clock, records, applied, logged, discovery } = start("dns:servers.example");
		await clock.advanceAsync(0);
		const { foundAtMs } = discovery.status();
		const before = records.addresses;
		records.addresses = result;
		await clock.advanceAsync(60_000);
		expect(applied).toHaveLength(1);
		expect(logged).toEqual(["no servers were found: those from before are used"]);
		expect(discovery.status()).toMatchObject({ servers: 2, foundAtMs, problem });
		expect(discovery.status().failures).toBeGreaterThan(5);
		records.addresses = before;
		await clock.advanceAsync(6_000);
		expect(logged.at(-1)).toBe("servers are found again");
		expect(discovery.status()).toMatchObject({ servers: 2, problem: "" });
		expect(discovery.status().foundAtMs).toBeGreaterThan(foundAtMs ?? 0);
	});
});
