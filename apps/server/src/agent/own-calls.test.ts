/** The port for an agent's own calls, which every program on its machine can connect to. */
import { type AddressInfo, Server as NetServer } from "node:net";
import { idOf } from "@plinth/resource";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { filesOf } from "../certificates.fixture.ts";
import { openSession, post } from "../raw-calls.fixture.ts";
import {
	cacheIs,
	clientOf,
	startCachedAgent,
	startCachedServer,
	whenCached,
} from "./cache/cached-agent.fixture.ts";
import { respondWith, startUpstream } from "./raw-upstream.fixture.ts";
import { startTestAgent } from "./started-agent.fixture.ts";

const credential = "the-credential-of-an-agent";
const describeType = "/plinth.agent.v1.AgentCacheService/DescribeType";

/** The addresses on which this process begins to listen while `start` runs. */
async function listening(start: () => Promise<unknown>): Promise<readonly string[]> {
	const listen = vi.spyOn(NetServer.prototype, "listen");
	onTestFinished(() => listen.mockRestore());
	await start();
	return listen.mock.contexts.map(
		(server) => `http://127.0.0.1:${((server as NetServer).address() as AddressInfo).port}`,
	);
}

describe("the port for an agent's own calls", () => {
	it("refuses all that does not carry the secret of the agent, which no server gets", async () => {
		const upstream = await startUpstream(respondWith({}));
		const files = filesOf({ credential });
		let address = "";
		const opened = await listening(async () => {
			const agent = await startTestAgent([upstream.address], {
				cache: [Artist.type],
				serversCredentialFile: files.credential,
			});
			({ address } = agent);
		});
		const own = opened.filter((each) => each !== address);
		expect(own).toHaveLength(1);
		const session = openSession(own[0] ?? "");
		const guesses = [undefined, "", credential, "x".repeat(43)];
		for (const guess of guesses) {
			const headers = guess === undefined ? {} : { "x-plinth-internal": guess };
			for (const path of [describeType, "/plinth.resource.v1.ResourceService/Read", "/metrics"]) {
				const { status, body } = await post(session, path, "{}", { headers }).ended;
				expect([path, status, body]).toEqual([path, "401", expect.stringContaining("--listen")]);
			}
		}
		// Those of the agent itself have arrived, and no others.
		await vi.waitFor(() => expect(upstream.calls).not.toEqual([]), { timeout: 300_000 });
		for (const call of upstream.calls) {
			expect(call["content-type"]).toMatch(/^application\/grpc/);
			expect(call["x-plinth-internal"]).toBe(credential);
		}
	});

	it("has limits of its own, whatever those of clients are", async () => {
		const { server, port } = await startCachedServer();
		await server.client.write({ resource: artist("anna") });
		const agent = await startCachedAgent([port], {
			configuration: { limits: { streamsPerConnection: 1 } },
		});
		await cacheIs(agent, "used");
		await whenCached(agent, async ({ resources }) => {
			await resources.read({ id: idOf(Artist, "anna") });
		});
		// The rights of the second token are a second stream.
		await vi.waitFor(
			async () => {
				const { resources, wasCached } = clientOf(agent, "writer");
				await resources.read({ id: idOf(Artist, "anna") });
				expect(wasCached()).toBe(true);
			},
			{ timeout: 300_000 },
		);
	});
});
