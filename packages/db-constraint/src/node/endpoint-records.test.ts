import { LocalLeases, type Logger, silentLogger, systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { createMemoryBackend } from "@plinth/storage";
import { expect, it, vi } from "vitest";
import { withLocalFences } from "../lab/local-fences.fixture.ts";
import { endpointName } from "../shadow/endpoint-addresses.ts";
import { readRecord } from "../shadow/shadow-records.ts";
import { EndpointRecords } from "./endpoint-records.ts";

it("a server warns if another one that runs has the same addresses", async () => {
	const clock = new FakeClock();
	const warnings: unknown[] = [];
	const logger: Logger = { ...silentLogger, warn: (fields) => warnings.push(fields) };
	const leases = new LocalLeases();
	const backend = createMemoryBackend({ runtime: systemRuntime });
	const addresses = { announced: "http://balancer", direct: "http://127.0.0.1:7576" };
	const end = new AbortController();
	const run = () =>
		new EndpointRecords({
			...{ backend: withLocalFences(backend, leases), leases, addresses, logger },
			index: { endpoints: new Map(), onEndpoints: () => () => {} },
			runtime: { ...systemRuntime, clock },
		}).run(end.signal);
	const first = run();
	await vi.waitFor(async () =>
		expect(await readRecord(backend, endpointName(addresses))).toBeDefined(),
	);
	clock.advance(120_000);
	expect(warnings).toEqual([]);
	const second = run();
	clock.advance(30_000);
	expect(warnings).toEqual([]);
	clock.advance(30_000);
	expect(warnings).toEqual([addresses]);
	end.abort();
	await Promise.all([first, second]);
});
