/** What an agent does when servers fail, with servers that fail at exact steps. */
import { once } from "node:events";
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from "node:http2";
import { type Logger, silentLogger } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { curl } from "../curl.fixture.ts";
import { enveloped, metric, openSession, post } from "../raw-calls.fixture.ts";
import { respondWith, startUpstream } from "./raw-upstream.fixture.ts";
import { readiness, startReadyAgent, startTestAgent } from "./started-agent.fixture.ts";

const read = "/plinth.resource.v1.ResourceService/Read";
const write = "/plinth.resource.v1.ResourceService/Write";
const watch = "/plinth.resource.v1.ResourceService/WatchList";

/** Ends the connection once the request has arrived. */
function loseConnection(stream: ServerHttp2Stream): void {
	stream.resume();
	stream.on("end", () => stream.session?.destroy());
}

async function call(address: string, path: string, headers: Readonly<Record<string, string>> = {}) {
	const { status, body, rstCode } = await post(openSession(address), path, '{"id":1}', { headers })
		.ended;
	return { status, body, rstCode };
}

function textOf(name: string, value: IncomingHttpHeaders): string {
	return String(value[name]);
}

describe("a server that is lost after it has received a call", () => {
	it("gets a write once: the client learns that it may have been executed", async () => {
		const lost = await startUpstream(loseConnection);
		const other = await startUpstream(loseConnection);
		const warnings: string[] = [];
		const logger: Logger = { ...silentLogger, warn: (_, message) => warnings.push(message) };
		const agent = await startTestAgent([lost.address, other.address], {}, { logger });
		await readiness(agent.address, /: ready[\s\S]*: ready/);
		const { status, body } = await call(agent.address, write);
		expect(status).toBe("503");
		expect(JSON.parse(body)).toMatchObject({
			code: "unavailable",
			message: expect.stringContaining("which may have been executed"),
		});
		expect(lost.calls.length + other.calls.length).toBe(1);
		expect(warnings).toContain(
			"a server was lost while it handled a call that may change something",
		);
	});

	it("gets an unknown method once", async () => {
		const lost = await startUpstream(loseConnection);
		const agent = await startReadyAgent([lost.address]);
		expect((await call(agent.address, "/app.v1.Jukebox/Play")).status).toBe("503");
		expect(lost.calls).toHaveLength(1);
	});

	it("gets a write over gRPC once, and the client gets Unavailable", async () => {
		const lost = await startUpstream(loseConnection);
		const agent = await startReadyAgent([lost.address]);
		const { ended } = post(openSession(agent.address), write, enveloped("x"), {
			contentType: "application/grpc",
		});
		expect((await ended).status).toBe("grpc 14");
		expect(lost.calls).toHaveLength(1);
	});

	it("is replaced for a read, whose body is sent again", async () => {
		const bodies: string[] = [];
		const lost = await startUpstream(loseConnection);
		const other = await startUpstream((stream) => {
			stream.setEncoding("utf8").on("data", (text: string) => bodies.push(text));
			respondWith({ found: true })(stream, {});
		});
		const agent = await startReadyAgent([lost.address, other.address]);
		for (let count = 0; count < 4; count += 1) {
			expect(await call(agent.address, read)).toMatchObject({
				status: "200",
				body: '{"found":true}',
			});
			await readiness(agent.address, new RegExp(`${lost.address}: ready`));
		}
		expect(bodies.join("")).toBe('{"id":1}'.repeat(4));
		expect(await metric(agent.address, "plinth_agent_retries_total", 'reason="read"')).toBe(
			lost.calls.length,
		);
		expect(lost.calls.length).toBeGreaterThan(0);
	});
});

describe("a call that no server has begun", () => {
	it("is sent to another server if one refuses its stream, even a write", async () => {
		const refusing = await startUpstream((stream) =>
			stream.close(constants.NGHTTP2_REFUSED_STREAM),
		);
		const other = await startUpstream(respondWith({ written: true }));
		const agent = await startReadyAgent([refusing.address, other.address]);
		for (let count = 0; count < 4; count += 1) {
			expect(await call(agent.address, write)).toMatchObject({
				status: "200",
				body: '{"written":true}',
			});
		}
		expect(refusing.calls.length).toBeGreaterThan(0);
		expect(other.calls).toHaveLength(4);
	});

	it("is sent again if GOAWAY excludes it, on another connection", async () => {
		let hasExcluded = false;
		const server = await startUpstream((stream, headers) => {
			if (hasExcluded) {
				respondWith({ written: true })(stream, headers);
				return;
			}
			hasExcluded = true;
			// The stream before it: a health check.
			stream.session?.goaway(constants.NGHTTP2_NO_ERROR, Number(stream.id) - 2);
		});
		const agent = await startReadyAgent([server.address]);
		expect(await call(agent.address, write)).toMatchObject({
			status: "200",
			body: '{"written":true}',
		});
		expect(server.calls).toHaveLength(2);
	});

	it("is refused with the state of each server if none is ready", async () => {
		const gone = await startUpstream(respondWith({}));
		const unready = await startUpstream(respondWith({}));
		unready.readyStatus = 503;
		gone.close();
		const agent = await startTestAgent([gone.address, unready.address]);
		await readiness(agent.address, /ECONNREFUSED[\s\S]*status 503/);
		const { status, body } = await call(agent.address, write);
		expect(status).toBe("503");
		const { message } = JSON.parse(body);
		expect(message).toContain("no server is ready, and the call was not executed");
		expect(message).toContain(`${gone.address}: connect ECONNREFUSED`);
		expect(message).toContain(
			`${unready.address}: /readyz responded with status 503: not ready; the test says so`,
		);
		unready.readyStatus = 200;
		await readiness(agent.address, /^ready/);
		expect((await call(agent.address, write)).status).toBe("200");
	});
});

describe("a server that is Unavailable", () => {
	/** Responds with Unavailable to all calls, and is ready. */
	const startUnavailable = () =>
		startUpstream((stream) => {
			stream.resume();
			stream.respond({ ":status": 503, "content-type": "application/json" });
			stream.end('{"code":"unavailable","message":"from the server"}');
		});

	it("is replaced for reads, but not for writes", async () => {
		const unavailable = await startUnavailable();
		const other = await startUpstream(respondWith({ found: true }));
		const agent = await startReadyAgent([unavailable.address, other.address]);
		// After the first Unavailable, the other server is preferred.
		const outcomes = [await call(agent.address, write), await call(agent.address, write)];
		expect(new Set(outcomes.map(({ body }) => body))).toEqual(
			new Set(['{"code":"unavailable","message":"from the server"}', '{"found":true}']),
		);
		// Until a check has found that it is ready.
		while (unavailable.calls.length < 2) {
			expect((await call(agent.address, read)).status).toBe("200");
		}
		expect(unavailable.calls.map((headers) => headers[":path"])).toEqual([write, read]);
	});

	it("stays ready for all callers, however many calls it refuses", async () => {
		const { address, calls } = await startUnavailable();
		const agent = await startReadyAgent([address]);
		for (let count = 0; count < 10; count += 1) {
			expect((await call(agent.address, write)).status).toBe("503");
		}
		expect(calls).toHaveLength(10);
		await readiness(agent.address, new RegExp(`^ready\n${address}: ready`));
	});
});

describe("a server that is lost in the middle of a response", () => {
	/** Sends a message, or a part of one, and loses the connection when the client has it. */
	async function interrupted(contentType: string, body: Buffer) {
		const server = await startUpstream((stream) => {
			stream.resume();
			stream.respond({ ":status": 200, "content-type": contentType });
			stream.write(body);
		});
		const agent = await startReadyAgent([server.address]);
		const session = openSession(agent.address);
		const { stream, ended } = post(session, watch, enveloped("x"), { contentType });
		await once(stream, "data");
		for (const each of server.sessions) {
			each.destroy();
		}
		return ended;
	}

	it("ends a stream of gRPC with the status Unavailable", async () => {
		const { status, rstCode } = await interrupted("application/grpc", enveloped("one"));
		expect({ status, rstCode }).toEqual({ status: "grpc 14", rstCode: 0 });
	});

	it("ends a stream of Connect with an error message", async () => {
		const { body, rstCode } = await interrupted("application/connect+json", enveloped("{}"));
		expect(rstCode).toBe(0);
		expect(body).toMatch(/\{"error":\{"code":"unavailable","message":"the response was cut off/);
	});

	it("ends a stream of gRPC-Web with trailers", async () => {
		const { body, rstCode } = await interrupted("application/grpc-web+proto", enveloped("one"));
		expect(rstCode).toBe(0);
		expect(body).toMatch(/grpc-status: 14\r\n/);
	});

	it.each(["application/connect+json", "application/grpc", "application/grpc-web+proto"])(
		"resets a response of %s within a message",
		async (contentType) => {
			const partial = enveloped("a long message").subarray(0, 9);
			const { rstCode } = await interrupted(contentType, partial);
			expect(rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
		},
	);

	it("resets a response that has no place for an error", async () => {
		const unary = await interrupted("application/json", Buffer.from("{"));
		expect(unary.rstCode).toBe(constants.NGHTTP2_INTERNAL_ERROR);
	});
});

describe("what is passed on", () => {
	it("are the headers, trailers and bytes of both sides, without those of a connection", async () => {
		let received: IncomingHttpHeaders = {};
		const chunks: Buffer[] = [];
		const server = await startUpstream((stream, headers) => {
			received = headers;
			stream.on("data", (chunk: Buffer) => chunks.push(chunk));
			stream.on("end", () => {
				stream.respond(
					{ ":status": 200, "content-type": "application/grpc", "x-note": "caf\u00e9" },
					{ waitForTrailers: true },
				);
				stream.on("wantTrailers", () =>
					stream.sendTrailers({ "grpc-status": "7", "x-end-bin": "AAEC" }),
				);
				stream.end(Buffer.from([0, 0, 0, 0, 1, 255]));
			});
		});
		const agent = await startReadyAgent([server.address]);
		const session = openSession(agent.address);
		const stream = session.request({
			":method": "POST",
			":path": "/any.Service/Method?q=%20x",
			":authority": "plinth.example:7575",
			"content-type": "application/grpc",
			te: "trailers",
			authorization: "Bearer secret",
			"grpc-timeout": "5S",
			"x-bytes-bin": "AAEC",
			"x-note": "caf\u00e9",
			"proxy-authorization": "Basic x",
		});
		const body = Buffer.from([0, 0, 0, 0, 3, 0, 255, 128]);
		stream.end(body);
		const [head] = await once(stream, "response");
		const data: Buffer[] = [];
		stream.on("data", (chunk: Buffer) => data.push(chunk));
		const [trailers] = await once(stream, "trailers");
		expect(received).toMatchObject({
			":method": "POST",
			":path": "/any.Service/Method?q=%20x",
			":authority": "plinth.example:7575",
			authorization: "Bearer secret",
			te: "trailers",
			"grpc-timeout": "5S",
			"x-bytes-bin": "AAEC",
			"x-note": "caf\u00e9",
			"x-plinth-agents": expect.stringMatching(/^agent-/),
		});
		expect(received).not.toHaveProperty("proxy-authorization");
		expect(Buffer.concat(chunks)).toEqual(body);
		expect(head).toMatchObject({ ":status": 200, "x-note": "caf\u00e9" });
		expect(Buffer.concat(data)).toEqual(Buffer.from([0, 0, 0, 0, 1, 255]));
		expect(trailers).toMatchObject({ "grpc-status": "7", "x-end-bin": "AAEC" });
	});

	it("are no headers of an HTTP/1.1 connection", async () => {
		let received: IncomingHttpHeaders = {};
		const server = await startUpstream((stream, headers) => {
			received = headers;
			respondWith({})(stream, headers);
		});
		const agent = await startReadyAgent([server.address]);
		await curl(
			...[`${agent.address}${write}`, "--http1.1", "-d", "{}"],
			...["-H", "connection: keep-alive, x-hop", "-H", "x-hop: 1", "-H", "x-kept: 2"],
			...["-H", "te: gzip, trailers", "-H", "expect: 100-continue"],
		);
		expect(received).toMatchObject({ "x-kept": "2", te: "trailers" });
		for (const name of ["connection", "x-hop", "keep-alive", "expect", "transfer-encoding"]) {
			expect(received).not.toHaveProperty(name);
		}
		expect(textOf(":authority", received)).toBe(new URL(agent.address).host);
	});

	it("is a reset, in both directions", async () => {
		const begun = Promise.withResolvers<ServerHttp2Stream>();
		const resetting = await startUpstream((stream) => {
			// Without it, Node would end the response before it resets the stream.
			const options = { waitForTrailers: true };
			stream.respond({ ":status": 200, "content-type": "application/grpc" }, options);
			stream.write(enveloped("one"));
			begun.resolve(stream);
		});
		const agent = await startReadyAgent([resetting.address]);
		const { ended, stream: reader } = post(openSession(agent.address), watch, enveloped(""), {
			contentType: "application/grpc",
		});
		await once(reader, "data");
		(await begun.promise).close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
		expect((await ended).rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);

		const closed = Promise.withResolvers<number | undefined>();
		const arrived = Promise.withResolvers<void>();
		const waiting = await startUpstream((stream) => {
			stream.once("close", () => closed.resolve(stream.rstCode));
			arrived.resolve();
		});
		const other = await startReadyAgent([waiting.address]);
		const { stream } = post(openSession(other.address), write, "{}");
		await arrived.promise;
		stream.close(constants.NGHTTP2_CANCEL);
		expect(await closed.promise).toBe(constants.NGHTTP2_CANCEL);
	});
});

describe("a deadline", () => {
	it("ends a call whose server does not respond, and resets its stream", async () => {
		const closed = Promise.withResolvers<number | undefined>();
		const server = await startUpstream((stream) => {
			stream.once("close", () => closed.resolve(stream.rstCode));
		});
		const agent = await startReadyAgent([server.address]);
		const { body } = await call(agent.address, write, { "connect-timeout-ms": "50" });
		expect(JSON.parse(body)).toMatchObject({ code: "deadline_exceeded" });
		expect(await closed.promise).toBe(constants.NGHTTP2_CANCEL);
	});
});

describe("a loop", () => {
	it("is refused with an error that says so", async () => {
		const server = await startUpstream(respondWith({}));
		const first = await startReadyAgent([server.address]);
		const second = await startReadyAgent([first.address]);
		const third = await startReadyAgent([second.address]);
		expect((await call(third.address, read)).status).toBe("200");
		const passed = textOf("x-plinth-agents", server.calls[0] ?? {}).split(", ");
		expect(passed).toHaveLength(3);

		const looped = await call(first.address, read, { "x-plinth-agents": passed.join(", ") });
		expect(JSON.parse(looped.body)).toMatchObject({
			code: "failed_precondition",
			message: expect.stringMatching(/^the call was forwarded in a loop/),
		});
		const far = await call(first.address, read, { "x-plinth-agents": "a, b, c, d" });
		expect(JSON.parse(far.body)).toMatchObject({
			code: "failed_precondition",
			message: expect.stringMatching(/^the call has passed 4 agents/),
		});
	});

	it("never makes agents ready that only know each other", async () => {
		const port = await startUpstream(() => {});
		const { host } = new URL(port.address);
		port.close();
		const first = await startTestAgent([port.address]);
		const [, free = "0"] = host.split(":");
		const second = await startTestAgent([first.address], {
			listen: { host: "127.0.0.1", port: Number(free) },
		});
		await readiness(first.address, /status 503/);
		await readiness(second.address, /status 503/);
		expect((await call(first.address, read)).status).toBe("503");
	});
});

describe("back-pressure", () => {
	it("keeps what a client does not read at the server", async () => {
		const chunk = Buffer.alloc(16 * 1024);
		let written = 0;
		const server = await startUpstream((stream) => {
			stream.respond({ ":status": 200, "content-type": "application/grpc" });
			const fill = () => {
				while (!stream.destroyed && stream.write(chunk)) {
					written += chunk.length;
				}
			};
			stream.on("drain", fill);
			fill();
		});
		const agent = await startReadyAgent([server.address]);
		const session = openSession(agent.address);
		const { stream } = post(session, watch, "", { contentType: "application/grpc" });
		stream.pause();
		await once(stream, "response");
		// Long enough for anything that would flow: other calls, which pass through the same sessions.
		let before = -1;
		while (before !== written) {
			before = written;
			for (let count = 0; count < 50; count += 1) {
				await fetch(`${agent.address}/healthz`);
			}
		}
		expect(written).toBeLessThan(2 * 1024 ** 2);
		expect(await metric(agent.address, "plinth_agent_pending_bytes")).toBeLessThan(1024 ** 2);
		// Other calls are not held up by it.
		const healthy = post(openSession(agent.address), watch, "", {
			contentType: "application/grpc",
		});
		await once(healthy.stream, "data");
		stream.resume();
		await expect.poll(() => written, { interval: 10 }).toBeGreaterThan(8 * 1024 ** 2);
		stream.close();
		healthy.stream.close();
	});

	it("lets streams that are not read hold up no other call of their connection", async () => {
		const chunk = Buffer.alloc(16 * 1024);
		const sent: number[] = [];
		const server = await startUpstream((stream, headers) => {
			if (headers[":path"] !== watch) {
				respondWith({ found: true })(stream, headers);
				return;
			}
			stream.respond({ ":status": 200, "content-type": "application/grpc" });
			const own = sent.push(0) - 1;
			const send = () =>
				stream.write(chunk, (failure) => {
					if (failure === null || failure === undefined) {
						sent[own] = (sent[own] ?? 0) + chunk.length;
						send();
					}
				});
			send();
		});
		const agent = await startReadyAgent([server.address]);
		const session = openSession(agent.address);
		const unread = Array.from({ length: 120 }, () => {
			const { stream } = post(session, watch, "", { contentType: "application/grpc" });
			return stream.pause();
		});
		// The listener takes up to 64 KiB of each, and the window of each stream is full behind that.
		await expect.poll(() => sent.filter((bytes) => bytes > 112 * 1024).length).toBe(120);
		expect(server.sessions.size).toBe(1);
		expect(await call(agent.address, read)).toMatchObject({
			status: "200",
			body: '{"found":true}',
		});
		for (const stream of unread) {
			stream.close();
		}
	});

	it("keeps what a server does not read at the client", async () => {
		const server = await startUpstream((stream) => {
			stream.pause();
		});
		const agent = await startReadyAgent([server.address]);
		const session = openSession(agent.address);
		const stream = session.request({
			":method": "POST",
			":path": write,
			"content-type": "application/grpc",
		});
		stream.on("error", () => {});
		const chunk = Buffer.alloc(64 * 1024);
		chunk.writeUInt32BE(12 * 1024 ** 2, 1);
		let accepted = 0;
		const fill = () => {
			stream.write(accepted === 0 ? chunk : Buffer.alloc(64 * 1024), (failure) => {
				if (failure === null || failure === undefined) {
					accepted += chunk.length;
					fill();
				}
			});
		};
		fill();
		let before = -1;
		while (before !== accepted) {
			before = accepted;
			for (let count = 0; count < 50; count += 1) {
				await fetch(`${agent.address}/healthz`);
			}
		}
		expect(accepted).toBeGreaterThan(0);
		expect(accepted).toBeLessThan(2 * 1024 ** 2);
		stream.close();
	});
});
