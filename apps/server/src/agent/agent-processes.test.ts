/** An agent and servers as processes, as users start them; servers are killed. */
import { once } from "node:events";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { describe, expect, it, onTestFinished } from "vitest";
import { curl, curlJson } from "../curl.fixture.ts";
import { enveloped, metric, openSession, post, type RawCall } from "../raw-calls.fixture.ts";
import { ServerProcess } from "../server-process.fixture.ts";
import { readiness } from "./started-agent.fixture.ts";

const request = {
	type: { group: "tenancy", groupVersion: "v1", kind: "Namespace" },
	tenancy: { partition: "default" },
};

async function startBoth() {
	const etcd = await EtcdProcess.start();
	onTestFinished(() => etcd.dispose());
	const flags = ["--storage", "etcd", "--etcd-endpoints", etcd.url, "--listen", "127.0.0.1:0"];
	const servers = [new ServerProcess(...flags), new ServerProcess(...flags)];
	const addresses = await Promise.all(servers.map((server) => server.listening()));
	const hosts = addresses.map((address) => new URL(address).host);
	const agent = new ServerProcess(
		...["agent", "--servers", hosts.join(","), "--listen", "127.0.0.1:0"],
	);
	const address = await agent.listening();
	await readiness(address, /^ready[\s\S]*: ready[\s\S]*: ready/);
	return { servers, addresses, agent, address };
}

describeWith("etcd")("a server that is killed", () => {
	it("moves its watches and calls to the other server", async () => {
		const { servers, addresses, agent, address } = await startBoth();
		const watches: RawCall[] = [];
		do {
			const watch = post(
				openSession(address),
				"/plinth.resource.v1.ResourceService/WatchList",
				enveloped(JSON.stringify(request)),
				{ contentType: "application/connect+json" },
			);
			await once(watch.stream, "data");
			watches.push(watch);
		} while ((await metric(address, "plinth_agent_calls_open", addresses[0])) === 0);
		servers[0]?.kill("SIGKILL");
		const open = () => metric(address, "plinth_agent_calls_open", addresses[1]);
		await expect.poll(open, { interval: 10 }).toBe(watches.length);
		expect(await metric(address, "plinth_agent_watch_moves")).toBeGreaterThan(0);
		for (let count = 0; count < 5; count += 1) {
			expect(await curlJson(address, "List", request)).toHaveProperty("resources");
			const written = await curlJson(address, "Write", {
				resource: {
					id: { ...request, name: `written-${count}` },
					data: { "@type": "type.googleapis.com/plinth.tenancy.v1.Namespace" },
				},
			});
			expect(written).toMatchObject({ resource: { id: { name: `written-${count}` } } });
		}
		await agent.logs(/a server gets no calls for now/);
		expect(await curl(`${address}/readyz`)).toContain(`${addresses[0]}: not ready: `);

		servers[1]?.kill("SIGKILL");
		await readiness(address, /^not ready/);
		expect(await curlJson(address, "List", request)).toMatchObject({
			code: "unavailable",
			message: expect.stringMatching(
				new RegExp(`^no server is ready.*${addresses[0]}: .*${addresses[1]}: `),
			),
		});
		agent.kill("SIGTERM");
		expect((await agent.ended).code).toBe(0);
	});
});

describe("the command line of an agent", () => {
	it.each([
		[["agent"], "an agent needs --servers, such as --servers a:7575,b:7575"],
		[["agent", "--servers", "a"], '--servers "a" is not the address of a server, such as a:7575'],
		[["agent", "--discover", "a:7575"], '--discover "a:7575" is neither dns:<name>[:<port>]'],
		[["agent", "--discover", "file:/nowhere"], "/nowhere: no such file"],
		[["agent", "--storage", "memory"], "unknown flag --storage"],
		[["agent", "--servers", "a:1", "--server", "b:1"], "did you mean --servers?"],
		[["agnet"], "unknown command agnet: did you mean agent?"],
	])("%j is explained", async (args, message) => {
		const { code, stderr } = await new ServerProcess(...args).ended;
		expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
	});

	it("has a help of its own", async () => {
		const { code, stdout } = await new ServerProcess("agent", "--help").ended;
		expect(code).toBe(0);
		expect(stdout).toMatch(/^plinth-server agent: forwards calls to servers/);
		expect(stdout).toContain("--servers <host:port,…>");
		expect(stdout).not.toContain("--storage");
	});
});
