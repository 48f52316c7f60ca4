import { once } from "node:events";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
	StreamRequestSchema,
	StreamResponse,
} from "@plinth/proto/gen/plinth/peering/v1/peer_exchange_service_pb.js";
import { idOf, newUlid, typeOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { decorateBackend, type StorageBackend } from "@plinth/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { Good, good } from "../simulation/goods.fixture.ts";
import { encodeCredential, peerHeader } from "../trust/peer-header.ts";
import { decodeToken } from "../trust/peering-token.ts";
import { hashOf, newSecret } from "../trust/secrets.ts";
import { type TestCluster, TestNetwork } from "../two-clusters.fixture.ts";
import { Export } from "../types.ts";

const cluster = newUlid(systemRuntime);
const position = { type: typeOf(Good.type), version: "" };

/** A cluster that exports goods. */
async function exporting(): Promise<TestCluster> {
	const west = await new TestNetwork().cluster("west");
	await west.export("goods", "east");
	return west;
}

/** A new token, exchanged for a credential, as the header that has it. */
async function credentialAt({ api, exchange }: TestCluster) {
	const { peeringId, secret } = decodeToken((await api.createToken({ name: "east" })).token);
	const credential = newSecret();
	const credentialHash = hashOf(credential);
	await exchange.exchangeToken({ protocolVersion: 1, peeringId, secret, credentialHash, cluster });
	return { peeringId, headers: { [peerHeader]: encodeCredential(peeringId, credential) } };
}

/** The messages of a stream. */
async function open(
	{ exchange }: TestCluster,
	headers: { readonly [name: string]: string },
	request: MessageInitShape<typeof StreamRequestSchema> = { positions: [position] },
) {
	const described = { protocolVersion: 1, export: "goods" };
	const { generation, incarnation } = await exchange.getExport(described, { headers });
	const end = new AbortController();
	onTestFinished(() => end.abort());
	const stream = exchange.stream(
		{ ...described, generation, incarnation, ...request },
		{ headers, signal: end.signal },
	);
	return stream[Symbol.asyncIterator]();
}

type Messages = AsyncIterator<StreamResponse>;

/** Reads until a message of that kind. */
async function until(messages: Messages, kind: StreamResponse["message"]["case"]) {
	for (;;) {
		const { value, done } = await messages.next();
		if (done === true || value.message.case === kind) {
			return value;
		}
	}
}

/** The messages, which are added to a list as they are read. */
async function* recorded(messages: Messages, into: StreamResponse[]) {
	for (;;) {
		const { value, done } = await messages.next();
		if (done === true) {
			return;
		}
		into.push(value);
		yield value;
	}
}

/** Reads to the end. */
const rest = (messages: Messages) => until(messages, undefined);

describe("a stream to a peer", () => {
	it("ends when another token was exchanged", async () => {
		const west = await exporting();
		const { headers } = await credentialAt(west);
		const messages = await open(west, headers);
		await until(messages, "endOfSnapshot");
		const next = await credentialAt(west);
		await expect(rest(messages)).rejects.toThrow(/its credential has changed/);
		await until(await open(west, next.headers), "endOfSnapshot");
	});

	it("ends when the next credential was used, and not before", async () => {
		const west = await exporting();
		const { headers, peeringId } = await credentialAt(west);
		const messages = await open(west, headers);
		await until(messages, "endOfSnapshot");
		const next = newSecret();
		await west.exchange.rotateCredential({ credentialHash: hashOf(next) }, { headers });
		await west.client.write({ resource: good("one", "") });
		await until(messages, "upsert");
		const nextHeaders = { [peerHeader]: encodeCredential(peeringId, next) };
		await until(await open(west, nextHeaders), "endOfSnapshot");
		await expect(rest(messages)).rejects.toThrow(/its credential has changed/);
	});

	it.each([
		[2, "type goods.v1.Good has two positions"],
		[101, "positions has 101 entries, more than 100"],
	])("is refused with %i positions of one type", async (count, problem) => {
		const west = await exporting();
		const { headers } = await credentialAt(west);
		const positions = Array.from({ length: count }, () => position);
		await expect(rest(await open(west, headers, { positions }))).rejects.toThrow(problem);
	});

	it("sends nothing that was written after its Export has changed, however late the stream is told", async () => {
		const neverTold = (backend: StorageBackend) =>
			decorateBackend(backend, {
				async *watchList(query, options) {
					for await (const event of backend.watchList(query, options)) {
						yield event;
						if (query.type.kind === Export.type.kind && event.kind === "end-of-snapshot") {
							await once(options.signal, "abort");
						}
					}
				},
			});
		const west = await new TestNetwork().cluster("west", { decorate: neverTold });
		await west.export("goods", "east");
		const { headers } = await credentialAt(west);
		const messages = await open(west, headers);
		await until(messages, "endOfSnapshot");
		await west.export("goods", "another");
		await west.client.write({ resource: good("secret", "") });
		await expect(until(messages, "upsert")).rejects.toThrow(/has changed: stream again/);
	});

	it("sends nothing that was revoked while its window was full", async () => {
		const west = await exporting();
		const { headers } = await credentialAt(west);
		for (let at = 0; at < 8; at++) {
			await west.client.write({ resource: good(`x${at}`, "n".repeat(900_000)) });
		}
		const received: StreamResponse[] = [];
		const messages = recorded(await open(west, headers), received);
		const start = await until(messages, "start");
		const streamId = start?.message.case === "start" ? start.message.value.streamId : "";
		let last = await until(messages, "upsert");
		for (let sent = 1; sent < 5; sent++) {
			last = await until(messages, "upsert");
		}
		const revoked = rest(messages);
		revoked.catch(() => {});
		const query = { type: Export.type, tenancy: { partition: "", namespace: "" }, namePrefix: "" };
		const { signal } = new AbortController();
		const seen = (async () => {
			for await (const event of west.stored.watchList(query, { signal })) {
				if (event.kind === "delete") {
					return;
				}
			}
		})();
		// It is seen here after it was seen by the stream, which has watched for longer.
		await west.client.delete({ id: idOf(Export, "goods") });
		await seen;
		await west.exchange.acknowledge({ streamId, sequence: last?.sequence ?? 0n }, { headers });
		await expect(revoked).rejects.toThrow(/the Export, the Peering or its credential has changed/);
		expect(received.filter(({ message }) => message.case === "upsert")).toHaveLength(5);
	});
});
