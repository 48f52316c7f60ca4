import { createServer as createHttpServer, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import { describe, expect, it, onTestFinished } from "vitest";
import { networkProber } from "./network-prober.ts";

async function listen(server: Server): Promise<number> {
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	onTestFinished(() => {
		server.close();
	});
	const address = server.address() as AddressInfo;
	return address.port;
}

const host = "127.0.0.1";
const never = new AbortController().signal;

async function probeHttp(listener: RequestListener, path = "/") {
	const port = await listen(createHttpServer(listener));
	const result = await networkProber({ kind: "http", host, port, path }, never);
	return { ...result, message: result.message.replace(`:${port}`, "") };
}

describe("a probe by HTTP", () => {
	it.each([
		[200, true, "Answered"],
		[204, true, "Answered"],
		[302, false, "BadStatus"],
		[503, false, "BadStatus"],
	])("with status %i: %s", async (status, passed, reason) => {
		const result = await probeHttp((_request, response) => {
			response.writeHead(status, { location: "/elsewhere" }).end();
		});
		expect(result).toEqual({ passed, reason, message: `GET http://127.0.0.1/: ${status}` });
	});

	it("asks for the path, and does not wait for the end of the body", async () => {
		const result = await probeHttp((request, response) => {
			response.writeHead(request.url === "/health?deep=1" ? 200 : 404).write("endless");
		}, "/health?deep=1");
		expect(result).toMatchObject({ passed: true });
	});

	it("fails if the connection breaks before a response", async () => {
		const result = await probeHttp((request) => request.socket.destroy());
		expect(result).toEqual({
			passed: false,
			reason: "ConnectionFailed",
			message: "http://127.0.0.1/: ECONNRESET",
		});
	});

	it("fails if the response is not HTTP", async () => {
		const port = await listen(createTcpServer((socket) => socket.end("hello\r\n\r\n")));
		const result = await networkProber({ kind: "http", host, port, path: "/" }, never);
		expect(result).toMatchObject({ passed: false, reason: "ConnectionFailed" });
	});
});

describe("a probe by TCP", () => {
	it("passes if a connection is accepted", async () => {
		const port = await listen(createTcpServer());
		expect(await networkProber({ kind: "tcp", host, port }, never)).toEqual({
			passed: true,
			reason: "Connected",
			message: `tcp://127.0.0.1:${port} accepts connections`,
		});
	});
});

describe.each(["http", "tcp"] as const)("a probe by %s", (kind) => {
	const target = (port: number) => ({ kind, host, port, path: "/" });

	it("fails if nothing listens", async () => {
		const server = createTcpServer();
		const port = await listen(server);
		await new Promise((resolve) => server.close(resolve));
		expect(await networkProber(target(port), never)).toMatchObject({
			passed: false,
			reason: "ConnectionRefused",
		});
	});

	it("rejects with the reason of its signal", async () => {
		const reason = new Error("enough");
		const port = await listen(createTcpServer());
		await expect(networkProber(target(port), AbortSignal.abort(reason))).rejects.toThrow("enough");
	});
});
