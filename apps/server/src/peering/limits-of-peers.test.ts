import { createHash } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import { Import, peerHeader } from "@plinth/peering";
import { PeerExchangeService } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { idOf, newUlid } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { type Logger, silentLogger, systemRuntime } from "@plinth/runtime";
import { describe, expect, it, onTestFinished } from "vitest";
import { artist } from "../../testdata/music.ts";
import { outcome } from "../callers.fixture.ts";
import { enveloped, metric, openSession, post } from "../raw-calls.fixture.ts";
import { eventually, importing, TestCluster } from "./two-clusters.fixture.ts";

const getExport = "/plinth.peering.v1.PeerExchangeService/GetExport";
const list = "/plinth.resource.v1.ResourceService/List";
const artists = JSON.stringify({
	type: { group: "music", groupVersion: "v1", kind: "Artist" },
});

/** Clients read nothing for the whole test, however long it takes. */
const limits = { writeStallMs: 60 * 60_000 };

/** The streams of peers that have ended. */
const endedStreams = ({ server }: TestCluster) =>
	metric(server.address, "plinth_streams_ended_total", "PeerExchangeService");

const has = (east: TestCluster, ...names: readonly string[]) =>
	eventually(async () =>
		expect(await east.artists("west")).toEqual(names.map((name) => `default/${name}=jazz`)),
	);

/** Posts so often, over several connections, and reads no responses. */
function postUnread({ server }: TestCluster, count: number, path: string, body: string): void {
	let session = openSession(server.address, { initialWindowSize: 0 });
	for (let index = 0; index < count; index += 1) {
		if (index % 500 === 499) {
			session = openSession(server.address, { initialWindowSize: 0 });
		}
		post(session, path, body);
	}
}

describe("the stream of an export", { timeout: 600_000 }, () => {
	it("does not end because of unread responses of callers without a token or credential", async () => {
		const { west, east } = await importing({ limits });
		await west.write(artist("ella"));
		await has(east, "ella");
		postUnread(west, 1_020, getExport, "{}");
		await eventually(async () =>
			expect(
				await metric(west.server.address, "plinth_calls_cut_total", 'why="short_responses"'),
			).toBeGreaterThanOrEqual(20),
		);
		await west.write(artist("miles"));
		await has(east, "ella", "miles");
		expect(await endedStreams(west)).toBe(0);
	});

	it("does not end because others use all calls in flight", async () => {
		const callsInFlight = 40;
		const { west, east } = await importing({ limits, callLimits: { callsInFlight } });
		await west.write(artist("ella"));
		await has(east, "ella");
		await eventually(async () => {
			// More than there is room for: one is refused while an acknowledgment is in flight.
			postUnread(west, callsInFlight, list, artists);
			const inFlight = await metric(west.server.address, "plinth_calls_in_flight");
			expect(inFlight).toBeGreaterThanOrEqual(callsInFlight);
		});
		await west.write(artist("miles"));
		await has(east, "ella", "miles");
		expect(await endedStreams(west)).toBe(0);
	});

	it("counts as a stream of its peer, whose limit does not apply to others", async () => {
		const { west, east } = await importing({ callLimits: { streamsPerSubject: 1 } });
		await west.write(artist("ella"));
		await has(east, "ella");
		await east.import("again", { peer: "west", export: "artists", partition: "again" });
		await eventually(async () =>
			expect(await east.report("again")).toMatchObject({
				state: "Failed",
				message: expect.stringContaining(
					"too many streams from peer:east: at most 1 at once; end some of them",
				),
			}),
		);
		const { stream } = post(
			openSession(west.server.address),
			"/plinth.resource.v1.ResourceService/WatchList",
			enveloped(artists),
			{ contentType: "application/connect+json" },
		);
		let received = "";
		stream.on("data", (data: string) => {
			received += data;
		});
		await eventually(() => expect(received).toContain("ella"));
		await east.server.client.delete({ id: idOf(Import, "artists") });
		await eventually(async () =>
			expect(await east.artists("again")).toEqual(["default/ella=jazz"]),
		);
	});
});

describe("the calls of a peer", { timeout: 300_000 }, () => {
	it("have a rate of their own, and a refused one is audited once, with its peer", async () => {
		const lines: unknown[] = [];
		const logger: Logger = {
			...silentLogger,
			info(fields) {
				const { audit } = fields as { readonly audit?: { readonly method: string } };
				if (audit?.method.endsWith("/RotateCredential") === true) {
					lines.push(audit);
				}
			},
		};
		const storage = { kind: "memory" } as const;
		const callLimits = { callsPerSecond: 1e-6, callBurst: 2 };
		const west = await TestCluster.start({ storage, callLimits, logger });
		const { token } = await west.peerings().createToken({ name: "east" });
		const { peeringId, secret } = JSON.parse(
			Buffer.from(token.split(".")[1] ?? "", "base64url").toString(),
		);
		const credential = "c".repeat(43);
		const transport = createPlinthTransport({
			baseUrl: west.server.address,
			headers: { [peerHeader]: `peer ${peeringId}.${credential}` },
		});
		onTestFinished(() => transport.close());
		const client = createClient(PeerExchangeService, transport);
		const credentialHash = createHash("sha256").update(credential).digest();
		const cluster = newUlid(systemRuntime);
		await client.exchangeToken({ protocolVersion: 1, peeringId, secret, credentialHash, cluster });
		const rotate = () => outcome(client.rotateCredential({ credentialHash }));
		expect([await rotate(), await rotate(), await rotate()]).toEqual([
			"ok",
			"ok",
			expect.stringContaining("ResourceExhausted: too many calls from peer:east"),
		]);
		const method = "plinth.peering.v1.PeerExchangeService/RotateCredential";
		expect(lines).toEqual([
			{ subject: undefined, method, result: "ok" },
			{ subject: undefined, method, result: "ok" },
			{ subject: "peer:east", method, result: "resource_exhausted" },
		]);
	});
});
