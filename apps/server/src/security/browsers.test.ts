import { createRegistry } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
	createGrpcTransport,
	createConnectTransport as createNodeConnectTransport,
	createGrpcWebTransport as createNodeGrpcWebTransport,
} from "@connectrpc/connect-node";
import { createConnectTransport, createGrpcWebTransport } from "@connectrpc/connect-web";
import { NamespaceSchema, ResourceService } from "@plinth/proto";
import { idOf, Namespace } from "@plinth/resource";
import { insecureAllowAll } from "@plinth/resource-service";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { http2OfTests } from "../http2.fixture.ts";
import { createServer, type Server } from "../server.ts";
import { startServer } from "../started-server.fixture.ts";
import { browserFetch } from "./browser-fetch.fixture.ts";
import { rawHttp1, rawHttp2 } from "./raw-requests.fixture.ts";

const service = "/plinth.resource.v1.ResourceService";
const json = "content-type: application/json";
const page = "http://console.example:3000";

/** A namespace to write, as JSON. */
function namespace(name: string): string {
	const type = { group: "tenancy", groupVersion: "v1", kind: "Namespace" };
	return JSON.stringify({ resource: { id: { type, tenancy: { partition: "default" }, name } } });
}

async function exists(server: Server, name: string): Promise<boolean> {
	return server.client.read({ id: idOf(Namespace, name) }).then(
		() => true,
		() => false,
	);
}

describe("a server whose own authorizer looks at no tokens", () => {
	it("refuses writes of a page whose own name resolves to this machine", async () => {
		const authorizer = { ...insecureAllowAll };
		const server = await startServer({ authorizer });
		const headers = [json, "host: evil.example", "origin: http://evil.example"];
		const refused = await rawHttp1(
			server.address,
			[`POST ${service}/Write HTTP/1.1`, ...headers],
			namespace("rebound"),
		);
		expect(refused.status).toBe(403);
		expect(await exists(server, "rebound")).toBe(false);
	});
});

describe("a server without tokens", () => {
	let server: Server;
	let port: string;

	beforeAll(async () => {
		server = createServer({
			...http2OfTests(),
			storage: { kind: "memory" },
			listen: { host: "127.0.0.1", port: 0 },
			allowedHosts: ["Plinth.Example"],
			cors: { allowedOrigins: [page] },
		});
		await server.start();
		({ port } = new URL(server.address));
	});
	afterAll(() => server.stop());

	const write = (name: string, ...headers: readonly string[]) =>
		rawHttp1(server.address, [`POST ${service}/Write HTTP/1.1`, json, ...headers], namespace(name));

	it("refuses writes of a page whose own name resolves to this machine", async () => {
		const refused = await write("rebound", "host: evil.example", "origin: http://evil.example");
		expect(refused.status).toBe(403);
		expect(JSON.parse(refused.body)).toEqual({
			code: "permission_denied",
			message: expect.stringContaining('host "evil.example" is not allowed'),
		});
		expect(refused.body).toContain("--allowed-hosts evil.example");
		expect(await exists(server, "rebound")).toBe(false);
	});

	it("refuses writes of a page of another origin, even as a simple request", async () => {
		const host = `host: 127.0.0.1:${port}`;
		const refused = await write("crossed", host, "origin: http://evil.example");
		expect(refused.status).toBe(403);
		expect(refused.body).toContain("cors.allowedOrigins");
		expect(refused.headers).not.toHaveProperty("access-control-allow-origin");
		expect(await exists(server, "crossed")).toBe(false);
	});

	it.each([
		...["localhost", "LOCALHOST:1", "localhost.", "app.localhost:7575", "127.0.0.1", "[::1]:80"],
		...["10.1.2.3:7575", "plinth.example", "PLINTH.example.:80"],
	])("accepts Host %s, by HTTP/1.1 and as :authority", async (host) => {
		const first = await rawHttp1(server.address, ["GET /healthz HTTP/1.1", `host: ${host}`]);
		expect(first.status).toBe(200);
		const second = await rawHttp2(server.address, { ":path": "/healthz", ":authority": host });
		expect(second.status).toBe(200);
	});

	it.each([
		["evil.example", 403],
		["127.0.0.1.nip.io", 403],
		["0x7f.1", 403],
		["2130706433", 403],
		["localhost.evil.example", 403],
		["sub.plinth.example", 403],
		["user@localhost", 400],
		["localhost@evil.example", 400],
		["localhost:port", 400],
		["", 400],
	])("refuses Host %s, on every path", async (host, status) => {
		for (const path of ["/healthz", "/readyz", "/metrics", "/", "/nowhere", `${service}/List`]) {
			const first = await rawHttp1(server.address, [`GET ${path} HTTP/1.1`, `host: ${host}`]);
			expect(first.status, path).toBe(status);
			// nghttp2 itself resets streams with a malformed authority.
			if (status === 403) {
				const second = await rawHttp2(server.address, { ":path": path, ":authority": host });
				expect(second.status, path).toBe(status);
			}
		}
	});

	it("refuses several hosts, of which a proxy might use another one", async () => {
		const get = "GET /healthz HTTP/1.1";
		const twice = await rawHttp1(server.address, [get, "host: localhost", "Host: evil.example"]);
		expect(twice.status).toBe(400);
		const same = await rawHttp1(server.address, [get, "host: localhost", "host: localhost"]);
		expect(same.status).toBe(400);
		const other = { ":path": "/healthz", ":authority": "localhost", host: "evil.example" };
		const refused = await rawHttp2(server.address, other).then(
			({ status }) => status,
			(failure: unknown) => String(failure),
		);
		// Plinth's own framing resets a stream whose head is malformed.
		expect(refused).toEqual(
			http2OfTests().http2 === "node" ? 400 : expect.stringMatching(/PROTOCOL_ERROR/),
		);
		expect((await rawHttp2(server.address, { ...other, host: "LOCALHOST" })).status).toBe(200);
		const absolute = "GET http://evil.example/healthz HTTP/1.1";
		expect((await rawHttp1(server.address, [absolute, "host: localhost"])).status).toBe(404);
	});

	it("serves HTTP/1.0 health checks without a Host, which browsers always send", async () => {
		expect((await rawHttp1(server.address, ["GET /healthz HTTP/1.0"])).status).toBe(200);
		expect((await rawHttp1(server.address, ["GET /healthz HTTP/1.1"])).status).toBe(400);
		const origin = "origin: http://evil.example";
		expect((await rawHttp1(server.address, ["GET /healthz HTTP/1.0", origin])).status).toBe(403);
	});

	it.each([
		["null"],
		["http://evil.example"],
		["http://localhost:7575"],
		["http://localhost.evil.example"],
		["http://console.example"],
		["https://console.example:3000"],
		["http://console.example:3000.evil.example"],
		["http://console.example:3000, http://evil.example"],
		["file://"],
		["chrome-extension://abcdefgh"],
		[""],
	])("refuses Origin %j, on every path and by every protocol", async (origin) => {
		const host = `localhost:${port}`;
		for (const path of ["/healthz", "/metrics", "/nowhere", `${service}/List`]) {
			const lines = [`GET ${path} HTTP/1.1`, `host: ${host}`, `origin: ${origin}`];
			expect((await rawHttp1(server.address, lines)).status, path).toBe(403);
			const headers = { ":path": path, ":authority": host, origin };
			expect((await rawHttp2(server.address, headers)).status, path).toBe(403);
		}
		const twice = [
			"GET /healthz HTTP/1.1",
			`host: ${host}`,
			`origin: ${page}`,
			`origin: ${origin}`,
		];
		expect((await rawHttp1(server.address, twice)).status).toBe(403);
	});

	it("accepts pages of its own origin, under each of its names", async () => {
		for (const name of [`localhost:${port}`, `127.0.0.1:${port}`, "plinth.example", "[::1]:80"]) {
			const origin = new URL(`http://${name}`).origin;
			const lines = ["GET /healthz HTTP/1.1", `host: ${name}`, `origin: ${origin}`];
			expect((await rawHttp1(server.address, lines)).status, name).toBe(200);
			const secure = [lines[0] ?? "", `host: ${name}`, `origin: https://${name}`];
			expect((await rawHttp1(server.address, secure)).status, name).toBe(403);
		}
	});

	it("refuses reads that another site embeds, and allows links to be followed", async () => {
		const get = [`GET /metrics HTTP/1.1`, "host: localhost", "sec-fetch-site: cross-site"];
		const embedded = await rawHttp1(server.address, [...get, "sec-fetch-mode: no-cors"]);
		expect(embedded.status).toBe(403);
		const followed = await rawHttp1(server.address, [...get, "sec-fetch-mode: navigate"]);
		expect(followed.status).toBe(200);
	});

	it("responds to the preflight of an allowed page", async () => {
		const { status, headers } = await rawHttp1(server.address, [
			`OPTIONS ${service}/Write HTTP/1.1`,
			...[`host: 127.0.0.1:${port}`, `origin: ${page}`, "access-control-request-method: POST"],
			"access-control-request-headers: content-type,x-tenant,connect-timeout-ms",
			"access-control-request-private-network: true",
		]);
		expect(status).toBe(204);
		expect(headers).toMatchObject({
			"access-control-allow-origin": page,
			"access-control-allow-methods": "POST, GET",
			"access-control-max-age": "7200",
			"access-control-allow-private-network": "true",
			vary: expect.stringMatching(/^Origin/),
		});
		expect(headers).not.toHaveProperty("access-control-allow-credentials");
		const allowed = headers["access-control-allow-headers"]?.toLowerCase().split(", ");
		expect(allowed).toEqual(
			expect.arrayContaining([
				...["content-type", "connect-protocol-version", "connect-timeout-ms", "grpc-timeout"],
				...["x-grpc-web", "x-user-agent", "authorization", "traceparent", "x-tenant"],
			]),
		);
	});

	it("refuses the preflight of any other page", async () => {
		const { status, headers } = await rawHttp1(server.address, [
			`OPTIONS ${service}/Write HTTP/1.1`,
			...[`host: 127.0.0.1:${port}`, "origin: http://evil.example"],
			"access-control-request-method: POST",
		]);
		expect(status).toBe(403);
		expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
		expect(headers.vary).toBe("Origin");
	});

	it("tells caches that responses differ by origin, also without one", async () => {
		const response = await fetch(`${server.address}/healthz`);
		expect(response.headers.get("vary")).toBe("Origin");
		const call = await fetch(`${server.address}${service}/List`, {
			...{ method: "POST", headers: { "content-type": "application/json", origin: page } },
			body: JSON.stringify({ type: Namespace.type }),
		});
		expect(call.headers.get("vary")).toBe("Origin");
		expect(call.headers.get("access-control-allow-origin")).toBe(page);
	});

	it("counts what it refused", async () => {
		await rawHttp1(server.address, ["GET / HTTP/1.1", "host: evil.example"]);
		await rawHttp1(server.address, ["GET / HTTP/1.1", "host: localhost", "origin: null"]);
		const metrics = await (await fetch(`${server.address}/metrics`)).text();
		expect(metrics).toMatch(/plinth_requests_refused_total\{reason="host"[^}]*\} [1-9]/);
		expect(metrics).toMatch(/plinth_requests_refused_total\{reason="origin"[^}]*\} [1-9]/);
	});

	const connect = { jsonOptions: { registry: createRegistry(NamespaceSchema) } };
	const inBrowsers: readonly (readonly [string, (origin: string) => Transport])[] = [
		[
			"Connect",
			(origin) =>
				createConnectTransport({
					...connect,
					baseUrl: server.address,
					fetch: browserFetch(origin),
				}),
		],
		[
			"Connect by GET",
			(origin) =>
				createConnectTransport({
					...{ baseUrl: server.address, fetch: browserFetch(origin) },
					...{ ...connect, useHttpGet: true },
				}),
		],
		[
			"gRPC-Web",
			(origin) => createGrpcWebTransport({ baseUrl: server.address, fetch: browserFetch(origin) }),
		],
	];

	describe.each(inBrowsers)("to the pages of browsers, by %s", (_name, transportOf) => {
		it("serves an allowed one: calls, streams, and errors with their texts", async () => {
			const client = createClient(ResourceService, transportOf(page));
			const headers = { authorization: "Bearer none", "x-of-a-module": "1" };
			const { resource } = await client.read(
				{ id: idOf(Namespace, "default") },
				{ headers, timeoutMs: 60_000 },
			);
			expect(resource?.id?.name).toBe("default");
			for await (const { event } of client.watchList({ type: Namespace.type })) {
				if (event.case === "endOfSnapshot") {
					break;
				}
			}
			const failure = await client.read({ id: idOf(Namespace, "none") }).catch(ConnectError.from);
			expect(failure).toMatchObject({ code: Code.NotFound });
			expect(String(failure)).toContain("resource not found");
		});

		it("does not respond to any other one", async () => {
			const client = createClient(ResourceService, transportOf("http://evil.example"));
			await expect(client.read({ id: idOf(Namespace, "default") })).rejects.toThrow(
				"Failed to fetch",
			);
		});
	});

	const programs: readonly (readonly [string, () => Transport])[] = [
		["Connect", () => createNodeConnectTransport({ baseUrl: server.address, httpVersion: "1.1" })],
		[
			"Connect by GET",
			() =>
				createNodeConnectTransport({
					...{ baseUrl: server.address, httpVersion: "2", useHttpGet: true },
				}),
		],
		["gRPC", () => createGrpcTransport({ baseUrl: server.address })],
		["gRPC-Web", () => createNodeGrpcWebTransport({ baseUrl: server.address, httpVersion: "2" })],
	];

	it.each(programs)("tells clients by %s why they are refused", async (_name, transportOf) => {
		const client = createClient(ResourceService, transportOf());
		const headers = { origin: "http://evil.example" };
		const refusal = {
			code: Code.PermissionDenied,
			rawMessage: expect.stringContaining('origin "http://evil.example" is not allowed'),
		};
		await expect(
			client.read({ id: idOf(Namespace, "default") }, { headers }),
		).rejects.toMatchObject(refusal);
		const events = client.watchList({ type: Namespace.type }, { headers });
		await expect(events[Symbol.asyncIterator]().next()).rejects.toMatchObject(refusal);
	});
});

describe("a server", () => {
	it("that listens on a name accepts that name, and explains how to accept others", async () => {
		const server = await startServer({
			listen: { host: "0.0.0.0", port: 0 },
			allowAnonymous: true,
		});
		const { port } = new URL(server.address);
		const address = `http://127.0.0.1:${port}`;
		const refused = await rawHttp1(address, ["GET / HTTP/1.1", "host: plinth.internal"]);
		expect(refused.status).toBe(403);
		expect(refused.body).toContain("even with --allow-anonymous");
		expect(refused.body).toContain("--allowed-hosts plinth.internal");
	});

	it("with tokens accepts any Host, unless hosts are listed, and checks origins all the same", async () => {
		const authorizer = {
			authenticate: () => ({ subject: "miles", check: () => ({ kind: "allowed" as const }) }),
		};
		const any = await startServer({ authorizer });
		const evil = ["GET / HTTP/1.1", "host: evil.example"];
		expect((await rawHttp1(any.address, evil)).status).toBe(200);
		const crossed = [...evil, "origin: http://other.example"];
		expect((await rawHttp1(any.address, crossed)).status).toBe(403);
		const listed = await startServer({ authorizer, allowedHosts: ["plinth.example"] });
		expect((await rawHttp1(listed.address, evil)).status).toBe(403);
	});

	it("does not start with a host or an origin that is none", async () => {
		const start = (options: Partial<Parameters<typeof createServer>[0]>) =>
			createServer({ storage: { kind: "memory" }, ...options }).start();
		await expect(start({ allowedHosts: ["http://a.example"] })).rejects.toThrow(
			'allowedHosts "http://a.example" is not a host name',
		);
		await expect(start({ cors: { allowedOrigins: ["*"] } })).rejects.toThrow(
			'cors.allowedOrigins "*" is not an http or https origin',
		);
	});
});
