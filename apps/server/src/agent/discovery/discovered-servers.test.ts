/** Agents whose servers are discovered, over sockets. */
import { once } from "node:events";
import { rm, writeFile } from "node:fs/promises";
import type { ServerHttp2Stream } from "node:http2";
import { join } from "node:path";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { curl, curlJson } from "../../curl.fixture.ts";
import { enveloped, metric, openSession, post } from "../../raw-calls.fixture.ts";
import { startServer } from "../../started-server.fixture.ts";
import { respondWith, startUpstream } from "../raw-upstream.fixture.ts";
import { readiness, startTestAgent } from "../started-agent.fixture.ts";
import { discoverySource } from "./discovery-source.ts";

const namespaces = {
	type: { group: "tenancy", groupVersion: "v1", kind: "Namespace" },
	tenancy: { partition: "default" },
};
const read = "/plinth.resource.v1.ResourceService/Read";
const hostOf = (address: string) => new URL(address).host;

async function listFile(...addresses: readonly string[]): Promise<string> {
	const file = join(await temporaryFolder(), "servers");
	await write(file, ...addresses);
	return file;
}

async function write(file: string, ...addresses: readonly string[]): Promise<void> {
	await writeFile(file, ["# servers", ...addresses.map(hostOf)].join("\n"));
}

describeWith("etcd")("an agent with a file of servers of a cluster", () => {
	it("forwards to those that it names now, and moves watches of those that it named before", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const storage = { kind: "etcd", endpoints: [etcd.url] } as const;
		const [one, two] = [await startServer({ storage }), await startServer({ storage })];
		const file = await listFile(one.address);
		const discover = discoverySource(`file:${file}`);
		const agent = await startTestAgent([], { discover });
		await readiness(
			agent.address,
			new RegExp(`^ready[^]*${one.address}: ready[^]*1 server was found`),
		);
		const watch = post(
			openSession(agent.address),
			"/plinth.resource.v1.ResourceService/WatchList",
			enveloped(JSON.stringify(namespaces)),
			{ contentType: "application/connect+json" },
		);
		await once(watch.stream, "data");
		await write(file, two.address);
		await agent.reload();
		await readiness(agent.address, new RegExp(`^ready\\n${two.address}: ready\\nfile:`));
		const open = () => metric(agent.address, "plinth_agent_calls_open", two.address);
		await expect.poll(open, { interval: 10 }).toBe(1);
		const moves = () => metric(agent.address, "plinth_agent_watch_moves");
		await expect.poll(moves, { interval: 10 }).toBe(1);
		expect(watch.stream.closed).toBe(false);
		await one.stop();
		expect(await curlJson(agent.address, "List", namespaces)).toHaveProperty("resources");
		expect(await metric(agent.address, "plinth_agent_discovery_servers")).toBe(1);
		expect(await metric(agent.address, "plinth_agent_discovery_found_seconds")).toBeGreaterThan(
			1e9,
		);
	});
});

describe("an agent with a file of servers", () => {
	it("keeps them if the file is malformed or gone, and says so", async () => {
		const server = await startUpstream(respondWith({}));
		const file = await listFile(server.address);
		const agent = await startTestAgent([], { discover: discoverySource(`file:${file}`) });
		await readiness(agent.address, new RegExp(`${server.address}: ready`));
		await writeFile(file, "a:1\nb\n");
		await agent.reload();
		expect(await curl(`${agent.address}/readyz`)).toMatch(
			new RegExp(`${server.address}: ready\nfile:.* since then: ${file}:2: "b" is not the address`),
		);
		const failures = () => metric(agent.address, "plinth_agent_discovery_failures");
		const ofMalformed = await failures();
		expect(ofMalformed).toBeGreaterThan(0);
		await agent.reload();
		expect(await failures()).toBeGreaterThan(ofMalformed);
		await rm(file);
		await agent.reload();
		expect(await curl(`${agent.address}/readyz`)).toMatch(
			new RegExp(`^ready\n${server.address}: ready\nfile:.* since then: ${file}: no such file`),
		);
		const ofMissing = await failures();
		await agent.reload();
		expect(await failures()).toBeGreaterThan(ofMissing);
		expect((await post(openSession(agent.address), read, "{}").ended).status).toBe("200");
		await write(file, server.address);
		await agent.reload();
		expect(await curl(`${agent.address}/readyz`)).not.toContain("since then");
	});

	it("is well again when the same file is back", async () => {
		const server = await startUpstream(respondWith({}));
		const file = await listFile(server.address);
		const agent = await startTestAgent([], { discover: discoverySource(`file:${file}`) });
		await readiness(agent.address, new RegExp(`${server.address}: ready`));
		for (let time = 0; time < 2; time += 1) {
			await rm(file);
			await agent.reload();
			expect(await curl(`${agent.address}/readyz`)).toContain(`since then: ${file}: no such file`);
			await write(file, server.address);
			await agent.reload();
			expect(await curl(`${agent.address}/readyz`)).not.toContain("since then");
		}
	});

	it("does not start without the file, or with one that is malformed", async () => {
		const start = (file: string) =>
			startTestAgent(["http://127.0.0.1:1"], { discover: discoverySource(`file:${file}`) });
		await expect(start("/nowhere/servers")).rejects.toThrow(
			"--discover file:/nowhere/servers: /nowhere/servers: no such file. The file must exist when the agent starts, with one address per line",
		);
		await expect(start(await listFile())).rejects.toThrow("has no addresses");
	});

	it("lets calls finish at a server that was removed, and closes its connection then", async () => {
		const held: ServerHttp2Stream[] = [];
		const former = await startUpstream((stream) => void held.push(stream));
		const next = await startUpstream(respondWith({ from: "next" }));
		const file = await listFile(former.address);
		const agent = await startTestAgent([], { discover: discoverySource(`file:${file}`) });
		await readiness(agent.address, /: ready/);
		const session = openSession(agent.address);
		const written = post(session, "/plinth.resource.v1.ResourceService/Write", "{}");
		await expect.poll(() => held.length, { interval: 10 }).toBe(1);
		await write(file, next.address);
		await agent.reload();
		await readiness(
			agent.address,
			new RegExp(`${next.address}: ready\n${former.address}: removed: 1 calls have not ended`),
		);
		expect((await post(session, read, "{}").ended).body).toBe('{"from":"next"}');
		const [stream] = held;
		stream?.respond({ ":status": 200, "content-type": "application/json" });
		stream?.end('{"from":"former"}');
		expect((await written.ended).body).toBe('{"from":"former"}');
		await expect.poll(() => former.sessions.size, { interval: 10 }).toBe(0);
		expect(await curl(`${agent.address}/readyz`)).not.toContain(former.address);
	});
});

describe("an agent with a name of servers", () => {
	it("forwards to all addresses of the name, in addition to the servers that are named", async () => {
		const named = await startUpstream(respondWith({ from: "named" }));
		const found = await startUpstream(respondWith({ from: "found" }));
		const records = { addresses: [] as readonly string[] };
		const resolver = { addresses: async () => records.addresses, services: async () => [] };
		const discover = discoverySource(`dns:servers.example:${new URL(found.address).port}`);
		const agent = await startTestAgent([named.address], { discover }, { resolver });
		await readiness(
			agent.address,
			new RegExp(
				`^ready\n${named.address}: ready\ndns:.*: nothing was found yet; since then: .* has no`,
			),
		);
		records.addresses = ["127.0.0.1"];
		await agent.reload();
		await readiness(agent.address, new RegExp(`${found.address}: ready`));
		const session = openSession(agent.address);
		const bodies = new Set<string>();
		for (let count = 0; count < 4; count += 1) {
			bodies.add((await post(session, read, "{}").ended).body);
		}
		expect([...bodies].sort()).toEqual(['{"from":"found"}', '{"from":"named"}']);
		records.addresses = [];
		await agent.reload();
		await readiness(
			agent.address,
			new RegExp(`^ready\n[^]*${found.address}: ready\ndns:.*1 server was found at .* has no`),
		);
	});

	it("is not ready until servers are found, and says why", async () => {
		const resolver = {
			addresses: async () => Promise.reject(new Error("queryA ENOTFOUND")),
			services: async () => [],
		};
		const discover = discoverySource("dns:servers.example");
		const agent = await startTestAgent([], { discover }, { resolver });
		await readiness(agent.address, /^not ready\ndns:servers\.example: .*: queryA ENOTFOUND/);
		expect(JSON.parse((await post(openSession(agent.address), read, "{}").ended).body)).toEqual({
			code: "unavailable",
			message: "no server is ready, and the call was not executed: the agent knows no server",
		});
	});
});
