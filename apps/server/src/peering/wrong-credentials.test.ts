import { create, toJsonString } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { peerHeader } from "@plinth/peering";
import {
	ExchangeTokenRequestSchema,
	PeerExchangeService,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { newUlid } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { type Logger, silentLogger, systemRuntime } from "@plinth/runtime";
import { describe, expect, it, onTestFinished } from "vitest";
import { outcome } from "../callers.fixture.ts";
import { filesOf } from "../certificates.fixture.ts";
import { openSession, post } from "../raw-calls.fixture.ts";
import { TestCluster } from "./two-clusters.fixture.ts";

const ulid = () => newUlid(systemRuntime);

/** Repeats a call, many at a time, until it ends in a way. */
async function until<T>(call: () => Promise<T>, isWanted: (end: T) => boolean): Promise<T> {
	for (;;) {
		const ends = await Promise.all(Array.from({ length: 200 }, call));
		const found = ends.find(isWanted);
		if (found !== undefined) {
			return found;
		}
	}
}

/** The number of a metric without other labels than these. */
async function metric({ server }: TestCluster, name: string): Promise<number> {
	const text = await (await fetch(`${server.address}/metrics`)).text();
	const line = text.split("\n").find((each) => each.startsWith(name));
	return Number(line?.split(" ").at(-1) ?? 0);
}

describe("wrong credentials of peers", { timeout: 300_000 }, () => {
	it("are limited for each address, whose valid calls pass, and so are their audit lines", async () => {
		const opened = Promise.withResolvers<string>();
		const logger: Logger = {
			...silentLogger,
			info: (fields, message) => {
				if (message === "listens for agents") {
					opened.resolve(`http://${String((fields as { address?: unknown }).address)}`);
				}
			},
		};
		const { credential } = filesOf({ credential: "the-credential-of-agents" });
		const agents = { listen: { host: "127.0.0.1", port: 0 }, credentialFile: credential };
		const west = await TestCluster.start({ storage: { kind: "memory" }, agents, logger });
		const session = openSession(await opened.promise);
		const exchange = async (from: string, peeringId: string, secret: string) => {
			const request = create(ExchangeTokenRequestSchema, {
				...{ protocolVersion: 1, peeringId, secret, cluster: ulid() },
				credentialHash: new Uint8Array(32),
			});
			const path = "/plinth.peering.v1.PeerExchangeService/ExchangeToken";
			const headers = { [peerHeader]: "the-credential-of-agents", "x-plinth-client": from };
			const body = toJsonString(ExchangeTokenRequestSchema, request);
			return (await post(session, path, body, { headers }).ended).status;
		};
		const wrong = (from: string) => exchange(from, ulid(), "x".repeat(43));
		expect(await wrong("10.0.0.1")).toBe("401");
		expect(await metric(west, "plinth_audit_lines_suppressed_total")).toBe(0);
		await until(
			() => wrong("10.0.0.1"),
			(status) => status === "429",
		);
		expect(await wrong("10.0.0.2")).toBe("401");
		expect(await metric(west, 'plinth_calls_refused_total{why="rate"}')).toBeGreaterThan(0);
		expect(await metric(west, "plinth_audit_lines_suppressed_total")).toBeGreaterThan(0);
		const { token } = await west.peerings().createToken({ name: "east" });
		const { peeringId, secret } = JSON.parse(
			Buffer.from(token.split(".")[1] ?? "", "base64url").toString(),
		);
		expect(await exchange("10.0.0.1", peeringId, secret)).toBe("200");
	});

	it("are limited for calls and streams with a credential, too", async () => {
		const west = await TestCluster.start({ storage: { kind: "memory" } });
		const transport = createPlinthTransport({
			baseUrl: west.server.address,
			headers: { [peerHeader]: `peer ${ulid()}.${"x".repeat(43)}` },
		});
		onTestFinished(() => transport.close());
		const client = createClient(PeerExchangeService, transport);
		const named = { protocolVersion: 1, export: "artists" };
		const calls: readonly (() => Promise<unknown>)[] = [
			() => client.getExport(named),
			() => client.stream(named)[Symbol.asyncIterator]().next(),
			() => client.acknowledge({ streamId: ulid(), sequence: 1n }),
			() => client.rotateCredential({ credentialHash: new Uint8Array(32) }),
		];
		for (const call of calls) {
			const limited = await until(
				() => outcome(call()),
				(end) => !end.startsWith("Unauthenticated"),
			);
			expect(limited).toBe(
				"ResourceExhausted: too many calls with wrong credentials from this address: try again later",
			);
		}
	});
});
