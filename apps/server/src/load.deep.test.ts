import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import type { Socket } from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { typeOf } from "@plinth/resource";
import { tokenHash } from "@plinth/resource-service";
import { describe, expect, it } from "vitest";
import { Artist, artist } from "../testdata/music.ts";
import { filesOf } from "./certificates.fixture.ts";
import { http2OfLongTests, open, startLoaded, underLoad, watchRequest } from "./load.fixture.ts";
import { metricReaches } from "./raw-calls.fixture.ts";

const type = typeOf(Artist.type);
const typeJson = { group: "music", groupVersion: "v1", kind: "Artist" };
const writePath = "/plinth.resource.v1.ResourceService/Write";

describe.each(http2OfLongTests)("with --http2 %s, the heap stays under", (http2) => {
	const start = (flags: readonly string[] = [], headers: Readonly<Record<string, string>> = {}) =>
		startLoaded(["--http2", http2, ...flags], headers);

	it("2,000 open watches", async () => {
		const server = await start();
		const perConnection = 100;
		const given = new AbortController();
		let received = 0;
		const ends: Promise<unknown>[] = [];
		const opened: Promise<unknown>[] = [];
		for (let connection = 0; connection < 2_000 / perConnection; connection += 1) {
			const client = createClient(
				ResourceService,
				createGrpcTransport({ baseUrl: server.address }),
			);
			for (let stream = 0; stream < perConnection; stream += 1) {
				const ready = Promise.withResolvers<void>();
				opened.push(ready.promise);
				ends.push(
					(async () => {
						for await (const { event } of client.watchList({ type }, { signal: given.signal })) {
							if (event.case === "endOfSnapshot") {
								ready.resolve();
							} else {
								received += 1;
							}
						}
					})().catch((failure) => {
						ready.reject(failure);
						return failure;
					}),
				);
			}
		}
		await Promise.all(opened);
		let written = 0;
		await underLoad("2,000 open watches", server, async () => {
			for (let write = 0; write < 3; write += 1) {
				await server.client.write({ resource: artist(`artist-${written % 50}`) });
				written += 1;
			}
			while (received < written * 2_000) {
				await new Promise((resolve) => setTimeout(resolve, 10));
			}
		});
		expect(received).toBe(2_000 * written);
		expect(written).toBeGreaterThan(0);
		given.abort();
		await Promise.allSettled(ends);
	});

	it("a slow reader that stops reading", async () => {
		const server = await start(["--limits-write-stall", "5s"]);
		const socket = await open(server.port);
		socket.write(watchRequest(typeJson));
		await once(socket, "readable");
		const notes = "x".repeat(4_000);
		// About 240 kB of heap.
		const metadata = Object.fromEntries(Array.from({ length: 60 }, (_, key) => [`k${key}`, notes]));
		let written = 0;
		const write = async () => {
			const resource = artist(`artist-${written % 33}`);
			resource.metadata = metadata;
			await server.client.write({ resource });
			written += 1;
		};
		// The event log keeps 64 MiB for those who resume: it is full before the heap is looked at.
		while (written < 300) {
			await write();
		}
		await underLoad("a reader that stops", server, async () => {
			for (let each = 0; each < 80; each += 1) {
				await write();
			}
		});
		// It has lost the watch meanwhile, and can't be told so behind what it has not read.
		await metricReaches(server.address, "plinth_calls_cut_total", 1, 'why="write_stall"');
		const closed = once(socket, "close");
		socket.resume();
		await closed;
	});

	it("clients that open streams and vanish", async () => {
		const server = await start();
		await server.client.write({ resource: artist("miles") });
		await underLoad("clients that vanish", server, async () => {
			const sockets = await Promise.all(
				Array.from({ length: 200 }, async () => {
					const socket = await open(server.port);
					socket.write(watchRequest(typeJson));
					await once(socket, "readable");
					return socket;
				}),
			);
			for (const socket of sockets) {
				socket.destroy();
			}
			const sessions: ClientHttp2Session[] = [];
			for (let each = 0; each < 20; each += 1) {
				const session = connectHttp2(server.address);
				session.on("error", () => {});
				for (let stream = 0; stream < 10; stream += 1) {
					const call = session.request({
						":method": "POST",
						":path": "/plinth.resource.v1.ResourceService/WatchList",
						"content-type": "application/connect+json",
					});
					call.on("error", () => {});
					call.end(
						watchRequest(typeJson).subarray(-(JSON.stringify({ type: typeJson }).length + 5)),
					);
				}
				sessions.push(session);
			}
			await Promise.all(sessions.map((session) => once(session, "remoteSettings")));
			for (const session of sessions) {
				session.destroy();
			}
		});
		const text = await (await fetch(`${server.address}/metrics`)).text();
		expect(text).toMatch(/plinth_streams_open\{[^}]*WatchList"\} 0\n/);
	});

	it("request floods past the rate limit", async () => {
		const token = (name: string) =>
			`  - { subject: ${name}, sha256: ${tokenHash(name)}, policies: [all] }\n`;
		const { access } = filesOf({
			access: `policies: { all: [{ operations: ["*"] }] }\ntokens:\n${token("flooder")}${token("reader")}${token("heap")}`,
		});
		const as = (name: string) => ({ authorization: `Bearer ${name}` });
		const server = await start(
			[
				...["--access-file", access],
				// A round is 1,000 calls: some are refused unless it takes minutes.
				...["--limits-calls-per-second", "5", "--limits-call-burst", "100"],
			],
			as("heap"),
		);
		const counts = { ok: 0, refused: 0 };
		await underLoad(
			"floods past the rate limit",
			server,
			async () => {
				const flood = async () => {
					for (let call = 0; call < 20; call += 1) {
						const outcome = await server.client
							.list({ type, tenancy: {} }, { headers: as("flooder") })
							.then(() => "ok" as const, ConnectError.from);
						if (outcome === "ok") {
							counts.ok += 1;
						} else {
							expect(Code[outcome.code]).toBe("ResourceExhausted");
							counts.refused += 1;
						}
					}
				};
				await Promise.all(Array.from({ length: 50 }, flood));
			},
			{ headers: as("reader"), readEveryMs: 250 },
		);
		process.stdout.write(`floods: ${JSON.stringify(counts)}\n`);
		// How many depends on how fast the machine is.
		expect(counts.refused).toBeGreaterThan(0);
	});

	it("messages of 64 MB", async () => {
		const server = await start();
		const body = Buffer.alloc(64_000_000);
		const http1 = async (withLength: boolean) => {
			const call = httpRequest(`${server.address}${writePath}`, {
				method: "POST",
				headers: {
					"content-type": "application/proto",
					...(withLength && { "content-length": body.length }),
				},
			});
			call.on("error", () => {});
			const received = once(call, "response");
			call.flushHeaders();
			call.end(body);
			const [response] = await received;
			response.resume();
			expect(response.statusCode).toBe(429);
			call.destroy();
		};
		const http2 = async () => {
			const session = connectHttp2(server.address, { maxSessionMemory: 1_000 });
			session.on("error", () => {});
			const call = session.request({
				":method": "POST",
				":path": writePath,
				"content-type": "application/grpc+proto",
			});
			call.on("error", () => {});
			const envelope = Buffer.alloc(5);
			envelope.writeUInt32BE(body.length, 1);
			call.write(envelope);
			call.write(body);
			const trailers = once(call, "trailers");
			const headers = once(call, "response");
			call.resume();
			const [head] = await headers;
			const [tail] = head["grpc-status"] === undefined ? await trailers : [head];
			expect(tail["grpc-status"]).toBe("8");
			session.destroy();
		};
		await underLoad("messages of 64 MB", server, async () => {
			await http1(true);
			await http1(false);
			await http2();
		});
	});

	it("connections that send headers slowly, or nothing at all", async () => {
		const server = await start(["--limits-headers-timeout", "2s"]);
		const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
		const beginnings = ["", "G", "GET /healthz HTTP/1.1\r\nhost: localhost\r\n", "PRI *", preface];
		await underLoad("silent and slow connections", server, async () => {
			const sockets: Socket[] = await Promise.all(
				Array.from({ length: 300 }, async (_, index) => {
					const socket = await open(server.port);
					socket.resume();
					socket.write(beginnings[index % beginnings.length] ?? "", "latin1");
					return socket;
				}),
			);
			const trickle = setInterval(() => {
				for (const [index, socket] of sockets.entries()) {
					if (index % beginnings.length === 2 && !socket.destroyed) {
						socket.write("a");
					}
				}
			}, 200);
			await Promise.all(
				// Not `once` of events, which fails where the connection was reset.
				sockets.map(
					(socket) =>
						socket.destroyed || new Promise<void>((resolve) => socket.once("close", resolve)),
				),
			);
			clearInterval(trickle);
		});
	});
});
