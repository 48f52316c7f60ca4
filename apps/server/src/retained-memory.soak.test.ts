import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { typeOf } from "@plinth/resource";
import { describe, expect, it, onTestFinished } from "vitest";
import { Artist, artist } from "../testdata/music.ts";
import { musicModuleFile, ServerProcess } from "./server-process.fixture.ts";

const mebibyte = 1024 * 1024;
/** Resources of a megabyte that are written again and again. */
const resources = 16;
const content = "x".repeat(1_000_000);
const request = { type: typeOf(Artist.type), tenancy: {}, pageSize: 1 };

async function startServer() {
	const server = new ServerProcess(
		...["--listen", "127.0.0.1:0", "--storage", "memory", "--module", musicModuleFile],
		// Logs and snapshots together retain at most a quarter of it.
		...["--memory-limit", "256MiB"],
	);
	const baseUrl = await server.listening();
	const client = createClient(ResourceService, createGrpcTransport({ baseUrl }));
	return { server, baseUrl, client };
}

async function rewriteAll(client: Client<typeof ResourceService>): Promise<void> {
	for (let index = 0; index < resources; index += 1) {
		await client.write({ resource: artist(`r${index}`, content) });
	}
}

async function residentMebibytes(baseUrl: string): Promise<number> {
	const metrics = await (await fetch(`${baseUrl}/metrics`)).text();
	const bytes = /^plinth_process_memory_bytes\{kind="rss"[^}]*\} (\S+)$/m.exec(metrics)?.[1];
	expect(bytes).toBeDefined();
	return Math.round(Number(bytes) / mebibyte);
}

describe("a server whose resources of a megabyte are rewritten", () => {
	it("holds 10 page tokens within its budget, and tells those that have ended to list again", async () => {
		const { baseUrl, client } = await startServer();
		// The log of the type is as long as it gets.
		for (let round = 0; round < 3; round += 1) {
			await rewriteAll(client);
		}
		const before = await residentMebibytes(baseUrl);
		const tokens: string[] = [];
		for (let round = 0; round < 10; round += 1) {
			tokens.push((await client.list(request)).nextPageToken);
			await rewriteAll(client);
		}
		const after = await residentMebibytes(baseUrl);
		const pages = await Promise.allSettled(
			tokens.map((pageToken) => client.list({ ...request, pageToken })),
		);
		const good = pages.filter(({ status }) => status === "fulfilled").length;
		process.stdout.write(`10 page tokens: ${before} to ${after} MiB, ${good} tokens still good\n`);
		// All of them together would hold 160 MB.
		expect(after - before).toBeLessThan(110);
		expect(good).toBeGreaterThan(1);
		expect(good).toBeLessThan(8);
		expect(pages.find(({ status }) => status === "rejected")).toMatchObject({
			reason: { rawMessage: "page_token has expired: list again from the start" },
		});
	});

	it("holds little for a watch that nobody reads", async () => {
		const { baseUrl, client } = await startServer();
		for (let round = 0; round < 6; round += 1) {
			await rewriteAll(client);
		}
		const before = await residentMebibytes(baseUrl);
		const stalled = 8;
		for (let count = 0; count < stalled; count += 1) {
			await stalledWatch(baseUrl);
			await rewriteAll(client);
		}
		const after = await residentMebibytes(baseUrl);
		const each = (after - before) / stalled;
		process.stdout.write(
			`${stalled} stalled watches: ${before} to ${after} MiB, ${each.toFixed(1)} MiB each\n`,
		);
		expect(each).toBeLessThan(8);
	});
});

/** A watch whose client reads the headers of the response, and nothing more. */
async function stalledWatch(baseUrl: string): Promise<ClientHttp2Session> {
	const session = connect(baseUrl);
	session.on("error", () => {});
	onTestFinished(() => session.destroy());
	const stream = session.request({
		":method": "POST",
		":path": "/plinth.resource.v1.ResourceService/WatchList",
		"content-type": "application/connect+json",
	});
	stream.on("error", () => {});
	const { group, groupVersion, kind } = Artist.type;
	const body = Buffer.from(JSON.stringify({ type: { group, groupVersion, kind } }));
	const head = Buffer.alloc(5);
	head.writeUInt32BE(body.length, 1);
	stream.end(Buffer.concat([head, body]));
	await once(stream, "response");
	return session;
}
