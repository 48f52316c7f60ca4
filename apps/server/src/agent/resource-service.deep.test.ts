/**
 * The suite of the resource service through an agent in front of two servers, of which one is killed at random between tests.
 * Each test has a storage of its own, so that the agent also meets another storage behind the same servers again and again.
 */
import { type Client, createClient, type ServiceImpl } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { declareSuite } from "@plinth/resource-service/suite";
import { silentLogger } from "@plinth/runtime";
import { seededRandom } from "@plinth/runtime/testing";
import { afterAll, beforeAll, expect, vi } from "vitest";
import { http2OfTests } from "../http2.fixture.ts";
import { metric } from "../raw-calls.fixture.ts";
import { type Agent, startAgent } from "./agent.ts";
import { areReady, KilledServer } from "./killed-server.fixture.ts";

const patiently = { timeout: 300_000, interval: 20 };

/** The service of the current test: that of both servers. */
let service: ServiceImpl<typeof ResourceService> | undefined;

/** A service whose methods are those of the current test. */
function currentService(): ServiceImpl<typeof ResourceService> {
	return new Proxy({} as ServiceImpl<typeof ResourceService>, {
		get: (_, method: keyof ServiceImpl<typeof ResourceService>) => {
			return (request: never, call: never) => {
				if (service === undefined) {
					throw new Error("no test has a service");
				}
				return service[method](request, call);
			};
		},
	});
}

/** A server of the current test's service. */
function newServer(): KilledServer {
	return new KilledServer((router) => router.service(ResourceService, currentService()));
}

const servers = [newServer(), newServer()] as const;
const random = seededRandom(1);
let agent: Agent;
let client: Client<typeof ResourceService>;
let kills = 0;

beforeAll(async () => {
	await Promise.all(servers.map((server) => server.start()));
	agent = await startAgent(
		{
			listen: { host: "127.0.0.1", port: 0 },
			servers: servers.map(({ address }) => address),
			...{ stopLimitMs: 1_000, ...http2OfTests() },
			// The storage is another one for each test, so that even the first and largest call is sent again.
			forwardingLimits: { keptBytes: 2 * 1024 ** 2 },
		},
		{ logger: silentLogger },
	);
	await vi.waitFor(async () => expect(await areReady(agent, servers)).toBe(true), patiently);
	client = createClient(ResourceService, createGrpcTransport({ baseUrl: agent.address }));
});

afterAll(async () => {
	expect(kills).toBeGreaterThan(2);
	await vi.waitFor(
		async () => expect(await metric(agent.address, "plinth_agent_calls_open")).toBe(0),
		patiently,
	);
	await agent.stop();
	await Promise.all(servers.map((server) => server.kill()));
});

/** Between two tests: a server that was killed comes back, or one of two that are ready is killed. */
async function changeServers(): Promise<void> {
	const chance = random.next();
	const killed = servers.find(({ isRunning }) => !isRunning);
	if (killed !== undefined && chance < 0.5) {
		await killed.start();
	} else if (killed === undefined && chance < 0.7 && (await areReady(agent, servers))) {
		const server = servers[chance < 0.35 ? 0 : 1];
		await server.kill();
		kills += 1;
		// Until the agent has lost the connection, a write without a condition may be sent to it, and its outcome is not known.
		await vi.waitFor(async () => expect(await areReady(agent, [server])).toBe(false), patiently);
	}
}

await declareSuite("an agent in front of two servers", async (served) => {
	service = served;
	await changeServers();
	return {
		client,
		[Symbol.asyncDispose]: async () => {
			service = undefined;
		},
	};
});
