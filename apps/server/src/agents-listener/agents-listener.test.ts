/** The port for agents: who may use it, and what a server knows of the clients behind an agent. */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { constants, type IncomingHttpHeaders } from "node:http2";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { Namespace } from "@plinth/resource";
import { type Logger, silentLogger } from "@plinth/runtime";
import { describe, expect, it, onTestFinished } from "vitest";
import { musicModule } from "../../testdata/music.ts";
import { respondWith, startUpstream } from "../agent/raw-upstream.fixture.ts";
import { readiness, startReadyAgent, startTestAgent } from "../agent/started-agent.fixture.ts";
import { outcome, tokensOf, transportWith } from "../callers.fixture.ts";
import { filesOf } from "../certificates.fixture.ts";
import { parseCommandLine } from "../configuration/configuration.ts";
import { enveloped, openSession, post } from "../raw-calls.fixture.ts";
import type { ServerOptions } from "../server-options.ts";
import { startServer } from "../started-server.fixture.ts";

const [oldSecret, newSecret] = ["the-old-credential-of-agents", "the-new-credential-of-agents"];
const list = { type: Namespace.type, tenancy: { partition: "default" } };
const listPath = "/plinth.resource.v1.ResourceService/List";
const playPath = "/music.v1.JukeboxService/Play";

/** A server with a port for agents. */
async function start(credentials: string, options: Partial<ServerOptions> = {}) {
	const { credential } = filesOf({ credential: credentials });
	const opened = Promise.withResolvers<string>();
	const logger: Logger = {
		...silentLogger,
		info: (fields, message) => {
			if (message === "listens for agents") {
				opened.resolve(`http://${String((fields as { address?: unknown }).address)}`);
			}
		},
	};
	const agents = { listen: { host: "127.0.0.1", port: 0 }, credentialFile: credential };
	const server = await startServer({ ...options, agents, logger });
	return { server, credential, port: await opened.promise };
}

async function statusOf(address: string, headers: Readonly<Record<string, string>>) {
	const { ended } = post(openSession(address), listPath, JSON.stringify(list), { headers });
	return (await ended).status;
}

describe("the port for agents", () => {
	it("refuses all requests without a credential, in the form that their clients read", async () => {
		const { port } = await start(oldSecret);
		expect(await statusOf(port, {})).toBe("401");
		expect(await statusOf(port, { "x-plinth-internal": newSecret })).toBe("401");
		expect(await statusOf(port, { "x-plinth-internal": oldSecret })).toBe("200");
		expect((await fetch(`${port}/readyz`)).status).toBe(401);
		const { ended } = post(openSession(port), listPath, enveloped(""), {
			contentType: "application/grpc",
		});
		expect((await ended).status).toBe("grpc 16");
		const agent = await startTestAgent([port]);
		await readiness(
			agent.address,
			/status 401: this port is for agents: start them with --servers/,
		);
	});

	it("accepts several credentials, so that they can be replaced while agents run", async () => {
		const { server, port, credential } = await start(`${oldSecret}\n${newSecret}\n`);
		const { own } = filesOf({ own: `${oldSecret}\n` });
		const agent = await startReadyAgent([port], { serversCredentialFile: own });
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: agent.address }));
		expect(await outcome(client.list(list))).toBe("ok");
		writeFileSync(own, newSecret);
		await agent.reload();
		writeFileSync(credential, newSecret);
		await server.reload();
		expect(await outcome(client.list(list))).toBe("ok");
		expect(await statusOf(port, { "x-plinth-internal": oldSecret })).toBe("401");
	});

	it("is not opened for other machines if every caller has full rights", async () => {
		const { credential } = filesOf({ credential: oldSecret });
		const agents = { listen: { host: "0.0.0.0", port: 0 }, credentialFile: credential };
		await expect(startServer({ agents })).rejects.toThrow(
			"is reachable from other machines, and every caller would have full rights",
		);
		const flags = ["--agents-listen", "0.0.0.0:7577", "--agents-credential-file", credential];
		expect(() => parseCommandLine(flags)).toThrow(
			"--agents-listen 0.0.0.0:7577 is reachable from other machines",
		);
		expect(() => parseCommandLine(flags.slice(0, 2))).toThrow(
			"--agents-listen and --agents-credential-file must be set together",
		);
	});

	it("gives an agent no rights: the token of the client counts", async () => {
		const { access } = filesOf({
			access: `${tokensOf({ reader: "reader" })}policies:\n  reader: [{ operations: [operator:read], type: tenancy.v1.Namespace }]\n`,
		});
		const { port } = await start(oldSecret, { access: { file: access } });
		const { own } = filesOf({ own: oldSecret });
		const agent = await startReadyAgent([port], { serversCredentialFile: own });
		const as = (token: string) =>
			createClient(ResourceService, transportWith(agent.address, token));
		expect(await outcome(as("reader-token").list(list))).toBe("ok");
		expect(await outcome(as("wrong").list(list))).toMatch(/^Unauthenticated: /);
		expect(await outcome(as(oldSecret).list(list))).toMatch(/^Unauthenticated: /);
		expect(await statusOf(port, { "x-plinth-internal": oldSecret })).toBe("401");
	});

	it("applies the limits of a connection to the clients that agents name", async () => {
		const released = Promise.withResolvers<void>();
		onTestFinished(() => released.resolve());
		const { port, server } = await start(oldSecret, {
			modules: [musicModule(released.promise)],
			limits: { streamsPerConnection: 2 },
			callLimits: { callsInFlight: 8 },
		});
		const play = (address: string, client: string) =>
			post(openSession(address), playPath, "{}", {
				headers: { "x-plinth-internal": oldSecret, "x-plinth-client": client },
			});
		const inFlight = async (count: number) => {
			const metrics = async () => (await fetch(`${server.address}/metrics`)).text();
			await expect
				.poll(metrics, { interval: 10 })
				.toMatch(new RegExp(`^plinth_calls_in_flight(\\{.*\\})? ${count}$`, "m"));
		};
		for (let count = 1; count <= 6; count += 1) {
			play(port, "10.0.0.1");
			await inFlight(count);
		}
		expect((await play(port, "10.0.0.1").ended).body).toContain(
			"6 calls from this connection are in flight",
		);
		play(port, "10.0.0.2");
		await inFlight(7);
		// On the public port, clients can't choose whom they count as.
		play(server.address, "10.0.0.1");
		await inFlight(8);
	});

	it.each(["plinth", "node"] as const)(
		"keeps a connection on which clients of the agent cancel many calls (http2 %s)",
		async (http2) => {
			const released = Promise.withResolvers<void>();
			const { port } = await start(oldSecret, { modules: [musicModule(released.promise)], http2 });
			const session = openSession(port);
			const headers = { "x-plinth-internal": oldSecret };
			const play = () => post(session, playPath, "{}", { headers });
			const kept = play();
			for (let round = 0; round < 50 && !session.closed; round += 1) {
				const canceled = Array.from({ length: 100 }, play);
				// Each has reached the server when a later frame was acknowledged.
				await new Promise((resolve) => session.ping(resolve));
				for (const { stream } of canceled) {
					stream.close(constants.NGHTTP2_CANCEL);
				}
				await Promise.all(canceled.map(({ ended }) => ended));
			}
			released.resolve();
			expect((await kept.ended).status).toBe("200");
		},
	);
});

it("a watch that moves has the credential of the time when it moves", async () => {
	const credentials: unknown[] = [];
	const upstream = await startUpstream((stream, headers) => {
		credentials.push(headers["x-plinth-internal"]);
		stream.resume();
		stream.respond({ ":status": 200, "content-type": "application/connect+json" });
		stream.write(enveloped(JSON.stringify({ endOfSnapshot: {}, version: "5" })));
	});
	const { own } = filesOf({ own: oldSecret });
	const agent = await startReadyAgent([upstream.address], { serversCredentialFile: own });
	const watch = "/plinth.resource.v1.ResourceService/WatchList";
	const { stream } = post(openSession(agent.address), watch, enveloped("{}"), {
		contentType: "application/connect+json",
	});
	await once(stream, "data");
	writeFileSync(own, newSecret);
	await agent.reload();
	for (const session of upstream.sessions) {
		session.destroy();
	}
	await expect.poll(() => credentials, { interval: 10 }).toEqual([oldSecret, newSecret]);
	stream.close();
});

describe("what an agent tells servers of its clients", () => {
	it("is their address, with its credential, whatever they send themselves", async () => {
		let received: IncomingHttpHeaders = {};
		const upstream = await startUpstream((stream, headers) => {
			received = headers;
			respondWith({})(stream, headers);
		});
		const { own } = filesOf({ own: oldSecret });
		const agent = await startReadyAgent([upstream.address], { serversCredentialFile: own });
		const forged = { "x-plinth-client": "10.0.0.1", "x-plinth-internal": "forged" };
		await statusOf(agent.address, forged);
		expect(received).toMatchObject({
			"x-plinth-client": expect.stringMatching(/^(?:::ffff:)?127\.0\.0\.1$/),
			"x-plinth-internal": oldSecret,
		});
		await fetch(`${agent.address}${listPath}`, { method: "POST", body: "{}", headers: forged });
		expect(received["x-plinth-client"]).toMatch(/127\.0\.0\.1$/);

		const other = await startReadyAgent([upstream.address]);
		const { stream } = post(openSession(other.address), listPath, "{}", { headers: forged });
		await once(stream, "response");
		expect(received).not.toHaveProperty("x-plinth-client");
		expect(received).not.toHaveProperty("x-plinth-internal");
	});
});
