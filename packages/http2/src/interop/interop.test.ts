import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import http2 from "node:http2";
import { join } from "node:path";
import { promisify } from "node:util";
import { itWith, temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { Echo } from "./echo.fixture.ts";
import { call } from "./node-client.fixture.ts";
import { startServer } from "./test-server.fixture.ts";

const post = { ":method": "POST", ":path": "/echo" };
/** Its response does not end: Node ends a request that it cancels, and may do so in a frame of its own before. */
const openEnded = { ...post, ":path": "/open-ended" };
const startEcho = () =>
	startServer((stream, head) =>
		head.path === openEnded[":path"] ? new OpenEndedEcho(stream) : new Echo(stream),
	);

class OpenEndedEcho extends Echo {
	override onEnd(): void {}
}

describe("a client of node:http2", () => {
	it("exchanges bodies of all sizes, and trailers", async () => {
		const client = (await startEcho()).connect();
		for (const size of [0, 1, 16_384, 16_385, 65_535, 65_536, 3_000_000]) {
			const body = randomBytes(size);
			const response = await call(client, post, body);
			expect(response.headers[":status"]).toBe(200);
			expect(response.body.equals(body)).toBe(true);
			expect(response.trailers).toMatchObject({ "grpc-status": "0" });
		}
	});

	it("sends many requests at the same time, some of which it cancels", async () => {
		const server = await startEcho();
		const client = server.connect();
		const before = Echo.resets.length;
		const calls = Array.from({ length: 500 }, async (_, index) => {
			if (index % 5 === 0) {
				const stream = client.request(openEnded);
				stream.on("error", () => {});
				stream.write("started");
				await once(stream, "data");
				stream.close(http2.constants.NGHTTP2_CANCEL);
				return;
			}
			const body = randomBytes(index * 40);
			const response = await call(client, { ...post, "x-index": String(index) }, body);
			expect(response.body.equals(body)).toBe(true);
		});
		await Promise.all(calls);
		await expect.poll(() => server.connections[0]?.activeStreams).toBe(0);
		expect(Echo.resets.slice(before)).toEqual(Array.from({ length: 100 }, () => "8 peer"));
		expect(server.connections[0]?.counters).toMatchObject({
			streamsOpened: 500,
			resetsReceived: 100,
		});
	});

	it("has tiny windows, and changes them", async () => {
		const client = (await startEcho()).connect({ settings: { initialWindowSize: 100 } });
		const body = randomBytes(20_000);
		const first = call(client, post, body);
		client.settings({ initialWindowSize: 3_000 });
		expect((await first).body.equals(body)).toBe(true);
		client.settings({ initialWindowSize: 70_000, headerTableSize: 0 });
		expect((await call(client, post, body)).body.equals(body)).toBe(true);
	});

	it("pings, and is closed in order", async () => {
		const server = await startEcho();
		const client = server.connect();
		const stream = client.request(post);
		await once(stream, "response");
		const pinged = new Promise((resolve) =>
			client.ping((_, __, payload) => resolve(payload.length)),
		);
		expect(await pinged).toBe(8);
		const closed = server.connections[0]?.close();
		await once(client, "goaway");
		stream.end("the last words");
		const chunks: Buffer[] = [];
		for await (const chunk of stream) {
			chunks.push(chunk);
		}
		expect(Buffer.concat(chunks).toString()).toBe("the last words");
		expect(await closed).toEqual({ code: 0, message: "" });
	});

	itWith("openssl")("speaks TLS", async () => {
		const folder = await temporaryFolder();
		const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
		const arguments_ = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
		const subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
		await promisify(execFile)("openssl", [
			...arguments_.split(" "),
			...subject,
			"-keyout",
			key,
			"-out",
			cert,
		]);
		const certificate = await readFile(cert);
		const server = await startServer(
			(stream) => new Echo(stream),
			{},
			{
				key: await readFile(key),
				cert: certificate,
			},
		);
		const client = server.connect({ ca: certificate });
		const bodies = [0, 10, 100_000, 1_000_000].map((size) => randomBytes(size));
		const responses = await Promise.all(bodies.map((body) => call(client, post, body)));
		expect(responses.map(({ body }, index) => body.equals(bodies[index] ?? body))).toEqual([
			true,
			true,
			true,
			true,
		]);
	});
});
