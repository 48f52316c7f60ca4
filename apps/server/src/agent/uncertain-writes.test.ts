/** What a client learns of a write whose server was lost: its result, or that it may have been executed. */
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
	createConnectTransport,
	createGrpcTransport,
	createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Artist, artist, musicModule } from "../../testdata/music.ts";
import { metric } from "../raw-calls.fixture.ts";
import type { Server } from "../server.ts";
import { startServer } from "../started-server.fixture.ts";
import { type RawUpstream, startUpstream } from "./raw-upstream.fixture.ts";
import { startReadyAgent } from "./started-agent.fixture.ts";

const transports: readonly [string, (baseUrl: string) => Transport][] = [
	["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
	["gRPC-Web", (baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" })],
	["Connect", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" })],
];

/** A server that passes calls to another one, and is lost before it responds. */
async function startLosing(server: Server, isExecuted: boolean): Promise<RawUpstream> {
	return startUpstream((stream, headers) => {
		const chunks: Buffer[] = [];
		stream.on("data", (chunk: Buffer) => chunks.push(chunk));
		stream.on("end", async () => {
			if (isExecuted) {
				const response = await fetch(`${server.address}${headers[":path"]}`, {
					method: "POST",
					headers: { "content-type": String(headers["content-type"]) },
					body: Buffer.concat(chunks),
				});
				await response.arrayBuffer();
			}
			stream.session?.destroy();
		});
	});
}

async function outcomeOf(call: Promise<unknown>): Promise<unknown> {
	try {
		await call;
		return "ok";
	} catch (failure) {
		const { code, details } = ConnectError.from(failure);
		const reasons = details.map((detail) =>
			"desc" in detail ? "" : `${detail.type} ${Buffer.from(detail.value).toString("latin1")}`,
		);
		return { code, reasons };
	}
}

const uncertain = {
	code: Code.Unavailable,
	reasons: [expect.stringMatching(/^google\.rpc\.ErrorInfo .*OUTCOME_UNKNOWN.*plinth\.dev$/s)],
};

describe.each(transports)("over %s, a write whose server was lost", (_name, to) => {
	/** An agent whose first write goes to a server that is lost. */
	async function start(isExecuted: boolean) {
		const server = await startServer({ modules: [musicModule()] });
		const direct = createClient(ResourceService, createGrpcTransport({ baseUrl: server.address }));
		const { resource } = await direct.write({ resource: artist("miles") });
		const losing = await startLosing(server, isExecuted);
		const agent = await startReadyAgent([losing.address, server.address]);
		const client = createClient(ResourceService, to(agent.address));
		/** Makes a call until it has gone to the server that is lost. */
		const lost = async (call: () => Promise<unknown>): Promise<unknown> => {
			// The next call goes to the other server of two.
			const reader = createClient(ResourceService, to(agent.address));
			await reader.read({ id: idOf(Artist, "miles") }).catch(() => {});
			if (losing.calls.length > 0) {
				throw new Error("the read has gone to the server that is lost");
			}
			return outcomeOf(call());
		};
		return { agent, client, direct, losing, lost, version: resource?.version ?? "" };
	}

	it("is sent again if it has a version: it was executed once, which the client does not know", async () => {
		const { agent, client, direct, losing, lost, version } = await start(true);
		const write = { ...artist("miles", "bebop"), version };
		expect(await lost(() => client.write({ resource: write }))).toEqual(uncertain);
		expect(losing.calls).toHaveLength(1);
		expect(await metric(agent.address, "plinth_agent_retries_total", "conditional_write")).toBe(1);
		const { resource } = await direct.read({ id: idOf(Artist, "miles") });
		expect(resource?.version).not.toBe(version);
	});

	it("succeeds if it had not been executed", async () => {
		const { client, losing, lost, version } = await start(false);
		expect(await lost(() => client.write({ resource: { ...artist("miles"), version } }))).toBe(
			"ok",
		);
		expect(losing.calls).toHaveLength(1);
	});

	it("is sent again if it only creates", async () => {
		const executed = await start(true);
		const creation = { resource: artist("john"), createOnly: true };
		expect(await executed.lost(() => executed.client.write(creation))).toEqual(uncertain);
		const other = await start(false);
		expect(await other.lost(() => other.client.write(creation))).toBe("ok");
	});

	it("fails with the error of a server that has not executed it, if it can't result from the first execution", async () => {
		const { client, lost } = await start(false);
		const malformed = { resource: { ...artist("Not A Label"), version: "1" } };
		expect(await lost(() => client.write(malformed))).toEqual({
			code: Code.InvalidArgument,
			reasons: [],
		});
	});

	it("is not sent again without a condition", async () => {
		const { client, direct, losing, lost } = await start(true);
		expect(await lost(() => client.write({ resource: artist("john") }))).toEqual(uncertain);
		expect(losing.calls).toHaveLength(1);
		expect((await direct.read({ id: idOf(Artist, "john") })).resource?.id?.name).toBe("john");
	});
});
