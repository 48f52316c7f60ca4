import { join } from "node:path";
import { fromBinary, toJsonString } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { peerHeader } from "@plinth/peering";
import { ControllerService, HistoryService, ResourceService, TypeService } from "@plinth/proto";
import { PeerExchangeService } from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import {
	type PeeringRecord,
	PeeringRecordSchema,
} from "@plinth/proto/gen/plinth/peering/v1/peering_record_pb.js";
import { PeeringService } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { idOf, Partition } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { silentLogger, systemRuntime } from "@plinth/runtime";
import { createSqliteBackend } from "@plinth/storage-sqlite";
import { describe, expect, it, onTestFinished } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { outcome, tokensOf, transportWith } from "../callers.fixture.ts";
import { createAuthority, filesOf } from "../certificates.fixture.ts";
import { databaseFile } from "../storage/open-storage.ts";
import { allArtists, eventually, importing, peer, TestCluster } from "./two-clusters.fixture.ts";

const policies = `
policies:
  everything: [{ operations: ["*"] }]
  artists: [{ operations: [operator:read, operator:write], type: music.v1.Artist }]
`;
const access = () => ({
	file: filesOf({ access: policies + tokensOf({ admin: "everything", alice: "artists" }) }).access,
});

/** The records of peerings in the file of a stopped cluster: what no service shows. */
async function recordsOf(cluster: TestCluster): Promise<readonly PeeringRecord[]> {
	const path = join(cluster.directory, databaseFile);
	const backend = await createSqliteBackend({ path });
	try {
		const type = { group: "peering", groupVersion: "v1", kind: "PeeringRecord" };
		const tenancy = { partition: "", namespace: "" };
		const { resources } = await backend.list({ type, tenancy, namePrefix: "" });
		return resources.map(({ data }) =>
			fromBinary(PeeringRecordSchema, data?.value ?? new Uint8Array()),
		);
	} finally {
		await backend.close();
	}
}

/** The credential of a stopped cluster, as it sends it. */
async function credentialOf(cluster: TestCluster): Promise<string> {
	for (const { record } of await recordsOf(cluster)) {
		if (record.case === "importing") {
			return `peer ${record.value.peeringId}.${record.value.credential}`;
		}
	}
	throw new Error("the cluster has no credential");
}

/** All texts of records, as one. */
async function textOf(cluster: TestCluster): Promise<string> {
	return (await recordsOf(cluster)).map((each) => toJsonString(PeeringRecordSchema, each)).join();
}

/** A client of the service for peers, with a credential. */
function exchange(cluster: TestCluster, credential: string) {
	const transport = createPlinthTransport({
		baseUrl: cluster.server.address,
		headers: { [peerHeader]: credential },
	});
	onTestFinished(() => transport.close());
	return { client: createClient(PeerExchangeService, transport), transport };
}

describe("a token of a peering", { timeout: 300_000 }, () => {
	const tokenFor = async (west: TestCluster) =>
		(await west.peerings().createToken({ name: "east", address: west.server.address })).token;

	it("can be used once", async () => {
		const west = await TestCluster.start();
		const east = await TestCluster.start();
		const north = await TestCluster.start();
		const token = await tokenFor(west);
		await east.peerings().establish({ name: "west", token });
		const again =
			/^FailedPrecondition: the other cluster, at .*, refused: the token is unknown, was used, or was replaced/;
		expect(await outcome(north.peerings().establish({ name: "west", token }))).toMatch(again);
		expect(await outcome(east.peerings().establish({ name: "west", token }))).toMatch(again);
		await west.export("artists", allArtists);
		await west.write(artist("miles"));
		await east.import("artists", { peer: "west", export: "artists", partition: "west" });
		await eventually(async () =>
			expect(await east.artists("west")).toEqual(["default/miles=jazz"]),
		);
	});

	it("is replaced by a newer one, expires after an hour, and is useless where it was created", async () => {
		let ahead = 0;
		const clock = { ...systemRuntime.clock, now: () => Date.now() + ahead };
		const runtime = { ...systemRuntime, clock };
		const west = await TestCluster.start({ storage: { kind: "memory" }, runtime });
		const east = await TestCluster.start({ storage: { kind: "memory" } });
		const replaced = await tokenFor(west);
		const token = await tokenFor(west);
		const establish = (each: string, at = east) =>
			outcome(at.peerings().establish({ name: "west", token: each }));
		expect(await establish(replaced)).toMatch(/was replaced by a newer one/);
		expect(await establish(token, west)).toMatch(/was created by this cluster itself/);
		ahead = 61 * 60_000;
		expect(await establish(token)).toMatch(
			/refused: the token has expired, an hour after it was created/,
		);
		ahead = 59 * 60_000;
		expect(await establish(token)).toBe("ok");
	});

	it("can be used again if the other cluster could not be reached", async () => {
		const west = await TestCluster.start();
		const east = await TestCluster.start();
		const token = await tokenFor(west);
		await west.stop();
		const establish = () => outcome(east.peerings().establish({ name: "west", token }));
		expect(await establish()).toMatch(/^Unavailable: the other cluster can't be reached at http/);
		await west.startAgain();
		expect(await establish()).toBe("ok");
		expect((await east.peerings().listPeerings({})).peerings).toMatchObject([
			{ name: "west", role: 2, isEstablished: true },
		]);
		expect((await west.peerings().listPeerings({})).peerings).toMatchObject([
			{ name: "east", role: 1, isEstablished: true },
		]);
	});

	it.each(["", "x", "plinth-peering-1.e30", "plinth-peering-1.%"])(
		"is refused if it is malformed: %s",
		async (token) => {
			const east = await TestCluster.start({ storage: { kind: "memory" } });
			expect(await outcome(east.peerings().establish({ name: "west", token }))).toMatch(
				/^InvalidArgument: token invalid: it (must start with|is cut off)/,
			);
		},
	);

	it("requires the right to write the Peering", async () => {
		const west = await TestCluster.start({ storage: { kind: "memory" }, access: access() });
		const create = (user: string) =>
			outcome(west.peerings(`${user}-token`).createToken({ name: "east" }));
		expect(await create("alice")).toBe(
			"PermissionDenied: alice lacks operator:write on peering.v1.Peering",
		);
		expect(await create("nobody")).toMatch(/^Unauthenticated/);
		expect(await create("admin")).toBe("ok");
		const listed = (user: string) => west.peerings(`${user}-token`).listPeerings({});
		expect((await listed("alice")).peerings).toEqual([]);
		expect((await listed("admin")).peerings).toMatchObject([
			{ name: "east", isEstablished: false },
		]);
	});
});

describe("the credential of a peer", { timeout: 300_000 }, () => {
	/** Two clusters; the one that is dialed requires tokens. */
	async function peered(lines: string[] = []) {
		const log = (fields: object, message?: string) =>
			lines.push(
				`${message} ${JSON.stringify(fields, (_, value) => (value instanceof Error ? String(value.stack) : value))}`,
			);
		const logger = { ...silentLogger, debug: log, info: log, warn: log, error: log };
		const west = await TestCluster.start({ access: access(), logger });
		const east = await TestCluster.start({ logger });
		const { token } = await west
			.peerings("admin-token")
			.createToken({ name: "east", address: west.server.address });
		await east.peerings().establish({ name: "west", token });
		await west.export("artists", allArtists);
		await west.export("private", { ...allArtists, peers: ["north"] });
		await west.write(artist("miles"));
		await east.import("artists", { peer: "west", export: "artists", partition: "west" });
		await eventually(async () =>
			expect(await east.artists("west")).toEqual(["default/miles=jazz"]),
		);
		return { west, east, token };
	}

	it("calls nothing but the service for peers, which shows what is exported to the peer alone", async () => {
		const { west, east } = await peered();
		await east.stop();
		const credential = await credentialOf(east);
		const { client, transport } = exchange(west, credential);
		const { generation, types } = await client.getExport({ protocolVersion: 1, export: "artists" });
		expect({ generation, types }).toMatchObject({ types: [{ problem: "" }] });
		const missing = 'NotFound: no Export of the name "private" for this peer';
		expect(await outcome(client.getExport({ protocolVersion: 1, export: "private" }))).toBe(
			missing,
		);
		expect(await outcome(client.getExport({ protocolVersion: 1, export: "nothing" }))).toBe(
			missing.replace("private", "nothing"),
		);
		expect(await outcome(client.getExport({ protocolVersion: 2, export: "artists" }))).toMatch(
			/^FailedPrecondition: the protocol of peerings has version 1 here, and version 2/,
		);
		const secret = credential.slice("peer ".length);
		const calls = (to: Transport) => [
			createClient(ResourceService, to).read({ id: idOf(Partition, "default") }),
			createClient(ResourceService, to).list({ type: Artist.type, tenancy: { partition: "*" } }),
			createClient(ResourceService, to).write({ resource: artist("x") }),
			createClient(TypeService, to).listTypes({}),
			createClient(HistoryService, to).listVersions({ id: idOf(Artist, "miles") }),
			createClient(ControllerService, to).listControllers({}),
			createClient(PeeringService, to).listPeerings({}),
			createClient(PeeringService, to).createToken({ name: "x" }),
		];
		for (const to of [transport, transportWith(west.server.address, secret)]) {
			for (const call of calls(to)) {
				expect(await outcome(call)).toMatch(/^Unauthenticated/);
			}
		}
		for (const wrong of [
			"",
			secret,
			`peer ${secret}x`,
			`peer ${"0".repeat(26)}.${secret.slice(27)}`,
		]) {
			const refused = exchange(west, wrong).client.getExport({
				protocolVersion: 1,
				export: "artists",
			});
			expect(await outcome(refused)).toMatch(/^Unauthenticated: the credential of the peer/);
		}
	});

	it("is replaced by the next one as soon as that is used, and not before", async () => {
		const { west, east } = await peered();
		await east.stop();
		const credential = await credentialOf(east);
		const [id = ""] = credential.slice("peer ".length).split(".");
		const next = "n".repeat(43);
		const nextCredential = `peer ${id}.${next}`;
		const request = { protocolVersion: 1, export: "artists" };
		const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", Buffer.from(next)));
		const former = exchange(west, credential).client;
		const latter = exchange(west, nextCredential).client;
		expect(await outcome(latter.getExport(request))).toMatch(/^Unauthenticated/);
		await former.rotateCredential({ credentialHash: hash });
		await former.rotateCredential({ credentialHash: hash });
		expect(await outcome(former.getExport(request))).toBe("ok");
		expect(await outcome(latter.getExport(request))).toBe("ok");
		expect(await outcome(former.getExport(request))).toMatch(/^Unauthenticated/);
		expect(await outcome(latter.rotateCredential({ credentialHash: hash }))).toBe("ok");
		expect(await outcome(latter.getExport(request))).toBe("ok");
	});

	it("is shown by no read, list, history or log, and stored as a hash where it is accepted", async () => {
		const lines: string[] = [];
		const { west, east, token } = await peered(lines);
		const type = { group: "peering", groupVersion: "v1", kind: "PeeringRecord" };
		const notRegistered = "InvalidArgument: resource type peering.v1.PeeringRecord not registered";
		const { client } = east.server;
		const id = { type, name: "cluster" };
		expect(await outcome(client.list({ type, tenancy: {} }))).toBe(notRegistered);
		expect(await outcome(client.read({ id }))).toBe(notRegistered);
		expect(await outcome(client.delete({ id }))).toBe(notRegistered);
		expect(await outcome(client.watchList({ type })[Symbol.asyncIterator]().next())).toBe(
			notRegistered,
		);
		const histories = createClient(HistoryService, east.transport());
		expect(await outcome(histories.listVersions({ id }))).toBe(notRegistered);
		const reports = JSON.stringify(await east.peerings().listPeerings({}), (_, value) =>
			typeof value === "bigint" ? String(value) : value,
		);
		await east.stop();
		const secret = (await credentialOf(east)).split(".")[1] ?? "";
		expect(secret).toHaveLength(43);
		const { secret: tokenSecret } = JSON.parse(
			Buffer.from(token.split(".")[1] ?? "", "base64url").toString(),
		);
		await west.stop();
		for (const text of [reports, lines.join("\n"), await textOf(west)]) {
			expect(text).not.toContain(secret);
			expect(text).not.toContain(tokenSecret);
		}
		expect(await textOf(east)).not.toContain(tokenSecret);
		expect(lines.join("\n")).toContain("PeeringService/Establish");
		expect(lines.join("\n")).not.toContain("PeerExchangeService/Acknowledge");
	});

	it("is sent over TLS to a cluster whose certificate is checked against the token's CA", async () => {
		const authority = await createAuthority();
		const issued = await authority.issue();
		const files = filesOf({ cert: issued.cert, key: issued.key });
		const west = await TestCluster.start({ tls: { certFile: files.cert, keyFile: files.key } });
		const east = await TestCluster.start();
		const address = west.server.address;
		const transport = createPlinthTransport({
			baseUrl: address,
			nodeOptions: { ca: authority.cert },
		});
		onTestFinished(() => transport.close());
		const peerings = createClient(PeeringService, transport);
		const other = await createAuthority("Another authority");
		const wrong = await peerings.createToken({ name: "east", address, ca: other.cert });
		expect(await outcome(east.peerings().establish({ name: "west", token: wrong.token }))).toMatch(
			/^Unavailable: the other cluster can't be reached/,
		);
		const { token } = await peerings.createToken({ name: "east", address, ca: authority.cert });
		expect(await outcome(east.peerings().establish({ name: "west", token }))).toBe("ok");
	});
});

it("a peering that is established again continues with the new credential", {
	timeout: 300_000,
}, async () => {
	const { west, east } = await importing();
	await west.write(artist("miles"));
	await eventually(async () => expect(await east.artists("west")).toEqual(["default/miles=jazz"]));
	await peer(west, east);
	await west.write(artist("ella"));
	await eventually(async () =>
		expect(await east.artists("west")).toEqual(["default/ella=jazz", "default/miles=jazz"]),
	);
	expect(await east.report("artists")).toMatchObject({ snapshots: 1n });
});
