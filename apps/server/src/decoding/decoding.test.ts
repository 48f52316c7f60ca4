import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, base64Encode, WireType } from "@bufbuild/protobuf/wire";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ListRequestSchema, ResourceService } from "@plinth/proto";
import { tokenHash } from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { JukeboxService, PlayRequestSchema } from "../../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist } from "../../testdata/music.ts";
import { filesOf } from "../certificates.fixture.ts";
import { defineModule } from "../module/index.ts";
import { startServer } from "../started-server.fixture.ts";
import { type RawCall, rawCall } from "./raw-call.fixture.ts";

const write = "/plinth.resource.v1.ResourceService/Write";
const list = "/plinth.resource.v1.ResourceService/List";
const watchList = "/plinth.resource.v1.ResourceService/WatchList";
const reflect = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

function envelope(message: Uint8Array, flags = 0): Buffer {
	const head = Buffer.alloc(5);
	head.writeUInt8(flags, 0);
	head.writeUInt32BE(message.length, 1);
	return Buffer.concat([head, message]);
}

/** How a request can come: by which protocol, in which encoding, over which version of HTTP. */
interface Way {
	readonly name: string;
	readonly http: 1 | 2;
	readonly contentType: string;
	readonly isEnveloped: boolean;
	readonly isJson: boolean;
}

const ways: readonly Way[] = ([1, 2] as const).flatMap((http) =>
	(["proto", "json"] as const).flatMap((encoding) => {
		const way = (name: string, contentType: string, isEnveloped: boolean): Way => ({
			name: `${name}, ${encoding}, HTTP/${http}`,
			...{ http, contentType, isEnveloped, isJson: encoding === "json" },
		});
		return [
			way("Connect", `application/${encoding}`, false),
			way("Connect streams", `application/connect+${encoding}`, true),
			way("gRPC-Web", `application/grpc-web+${encoding}`, true),
			...(http === 2 ? [way("gRPC", `application/grpc+${encoding}`, true)] : []),
		];
	}),
);

/** The methods that a request of that way can call. */
function pathsOf({ contentType, http }: Way): readonly string[] {
	if (/^application\/(proto|json)$/.test(contentType)) {
		return [write];
	}
	const streams = http === 2 ? [watchList, reflect] : [watchList];
	return contentType.startsWith("application/connect+") ? streams : [write, ...streams];
}

const requests = ways.flatMap((way) =>
	pathsOf(way).map(
		(path) => [`${path.slice(path.lastIndexOf("/") + 1)} by ${way.name}`, way, path] as const,
	),
);

function callOf(way: Way, path: string, message: Uint8Array, ends = true): RawCall {
	const body = way.isEnveloped ? envelope(message) : message;
	const trailers: Readonly<Record<string, string>> = way.http === 2 ? { te: "trailers" } : {};
	return {
		http: way.http,
		path,
		body,
		ends,
		headers: { "content-type": way.contentType, ...trailers },
	};
}

/** A server with a token without rights, and what its audit has. */
async function serverWithTokens(options: Parameters<typeof startServer>[0] = {}) {
	const token = (name: string, policy: string) =>
		`  - { subject: ${name}, sha256: ${tokenHash(name)}, policies: [${policy}] }\n`;
	const { access } = filesOf({
		access: `policies: { all: [{ operations: ["*"] }], none: [] }\ntokens:\n${token("alice", "all")}${token("mallory", "none")}`,
	});
	const audited: unknown[] = [];
	const info = (fields: Readonly<Record<string, unknown>>) => {
		if ("audit" in fields) {
			audited.push(fields.audit);
		}
	};
	const server = await startServer({
		stopLimitMs: 200,
		access: { file: access },
		logger: { debug: () => {}, info, warn: () => {}, error: () => {} },
		...options,
	});
	return { server, address: server.address, audited };
}

const as = (name: string) => ({ authorization: `Bearer ${name}` });

/** More fields than `limit`, and then what no decoder accepts. */
function malformedBomb(isJson: boolean, limit: number): Uint8Array {
	return isJson
		? Buffer.from(`{"a":[${"{},".repeat(limit)}{}`)
		: Buffer.concat([
				...Array.from({ length: limit }, () => Uint8Array.of(0xf8, 0x07, 1)),
				Buffer.of(7),
			]);
}

describe("a request without a valid token", () => {
	it.each(requests)("is refused before its body is read: %s", async (_name, way, path) => {
		const { address } = await serverWithTokens();
		// Only the beginning of the body is sent: a reader would wait for the rest.
		const call = callOf(way, path, new Uint8Array(100));
		const partial = { ...call, body: call.body?.subarray(0, 50) ?? new Uint8Array(), ends: false };
		expect(await rawCall(address, partial)).toMatch(/unauthenticated|grpc-status[":,\s]+16/i);
	});

	it.each([1, 2] as const)("is refused before it is decoded: GET, HTTP/%i", async (http) => {
		const { address } = await serverWithTokens();
		const path = `${list}?connect=v1&encoding=proto&base64=1&message=BwcHBw`;
		const call: RawCall = { http, method: "GET", path, headers: {}, ends: true };
		expect(await rawCall(address, call)).toMatch(/unauthenticated/);
		expect(await rawCall(address, { ...call, headers: as("alice") })).toMatch(/parse binary/);
	});

	it.each(["gzip", "br"])("is refused before it is decompressed: %s", async (encoding) => {
		const { address } = await serverWithTokens();
		const headers = { "content-type": "application/proto", "content-encoding": encoding };
		const call: RawCall = { http: 1, path: write, headers, body: gzipSync("x"), ends: true };
		expect(await rawCall(address, call)).toMatch(/unauthenticated/);
	});
});

describe("a message of more fields than the limit", () => {
	const limit = 500;

	it.each(requests)("is refused before it is decoded: %s", async (_name, way, path) => {
		const { address } = await serverWithTokens({ limits: { messageFields: limit } });
		const send = async (fields: number) => {
			const call = callOf(way, path, malformedBomb(way.isJson, fields));
			return rawCall(address, { ...call, headers: { ...call.headers, ...as("mallory") } });
		};
		expect(await send(limit + 1)).toMatch(
			new RegExp(
				`more than ${limit} fields \\(limits.messageFields\\)|more%20than%20${limit}%20fields`,
			),
		);
		expect(await send(limit - 10)).not.toMatch(/fields/);
	});

	it("is refused in the URL of a GET", async () => {
		const { address } = await serverWithTokens({ limits: { messageFields: 100 } });
		const get = (encoding: string, message: string) =>
			rawCall(address, {
				http: 1,
				method: "GET",
				path: `${list}?connect=v1&encoding=${encoding}&${message}`,
				headers: as("mallory"),
				ends: true,
			});
		const bomb = base64Encode(malformedBomb(false, 101), "url");
		expect(await get("proto", `base64=1&message=${bomb}`)).toMatch(/more than 100 fields/);
		expect(await get("json", `message=${encodeURIComponent(`[${"0,".repeat(101)}`)}`)).toMatch(
			/more than 100 fields/,
		);
		const good = toBinary(
			ListRequestSchema,
			create(ListRequestSchema, { namePrefix: "x".repeat(200) }),
		);
		expect(await get("proto", `base64=1&message=${base64Encode(good, "url")}`)).not.toMatch(
			/fields/,
		);
	});

	it("is refused for the contents of an Any of a registered type", async () => {
		const module = defineModule({ name: "music", types: [Artist] });
		const { address } = await serverWithTokens({
			modules: [module],
			limits: { messageFields: 300 },
		});
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
		const resource = artist("miles");
		const value = Buffer.concat(Array.from({ length: 300 }, () => Uint8Array.of(0xf8, 0x07, 1)));
		resource.data = { $typeName: "google.protobuf.Any", typeUrl: "/music.v1.Artist", value };
		const headers = as("alice");
		await expect(client.write({ resource }, { headers })).rejects.toThrow("more than 300 fields");
		resource.data.value = value.subarray(0, 600);
		expect((await client.write({ resource }, { headers })).resource?.id?.name).toBe("miles");
	});

	it("is refused by the method's own limit, in the audit and in the metrics", async () => {
		const module = defineModule({
			name: "music",
			messageFields: new Map([[JukeboxService.method.play, 3]]),
			services: (router) => {
				router.service(JukeboxService, { play: ({ song }) => ({ song }), hum: () => ({}) });
			},
		});
		const { address, audited } = await serverWithTokens({ modules: [module] });
		const client = createClient(JukeboxService, createGrpcTransport({ baseUrl: address }));
		const headers = as("alice");
		expect((await client.play({ song: "x".repeat(1_000) }, { headers })).song).toHaveLength(1_000);
		const request = create(PlayRequestSchema, { song: "x" });
		request.$unknown = Array.from({ length: 4 }, () => ({
			no: 9,
			wireType: 0,
			data: Uint8Array.of(1),
		}));
		const refused = await client.play(request, { headers }).catch(ConnectError.from);
		expect(refused).toMatchObject({
			code: Code.ResourceExhausted,
			rawMessage:
				"a message of music.v1.JukeboxService/Play has more than 3 fields (the limit of this method): split the request",
		});
		const method = "music.v1.JukeboxService/Play";
		expect(audited).toEqual([
			{ subject: "alice", method, result: "ok" },
			{ subject: "alice", method, result: "resource_exhausted" },
		]);
		const metrics = await fetch(`${address}/metrics`, { headers });
		expect(await metrics.text()).toMatch(/plinth_calls_refused_total\{why="fields".*\} 1/);
	});

	it("is refused by the size of a message to the health service, which reads from everyone", async () => {
		const { address } = await serverWithTokens();
		for (const http of [1, 2] as const) {
			const call: RawCall = {
				http,
				path: "/grpc.health.v1.Health/Check",
				headers: { "content-type": "application/json" },
				body: Buffer.from(JSON.stringify({ service: "x".repeat(5_000) })),
				ends: true,
			};
			expect(await rawCall(address, call)).toMatch(/resource_exhausted/);
		}
	});
});

describe("a compressed request", () => {
	it.each(requests)(
		"is refused with a valid token, and never decompressed: %s",
		async (_name, way, path) => {
			const { address } = await serverWithTokens();
			const bomb = gzipSync(Buffer.alloc(1_000_000));
			const call = callOf(way, path, bomb);
			const body = way.isEnveloped ? envelope(bomb, 1) : bomb;
			const header = way.isEnveloped
				? way.contentType.startsWith("application/connect")
					? "connect-content-encoding"
					: "grpc-encoding"
				: "content-encoding";
			const headers = { ...call.headers, ...as("alice") };
			const compressed = { ...call, body, headers: { ...headers, [header]: "gzip" } };
			const refusal = await rawCall(address, compressed);
			expect(refusal).toMatch(/unimplemented|grpc-status[":,\s]+12/i);
			expect(refusal).toMatch(/accepts(?: |%20)only(?: |%20)uncompressed(?: |%20)messages/);
			if (way.isEnveloped) {
				expect(await rawCall(address, { ...call, body, headers })).toMatch(
					/do(?: |%20)not(?: |%20)know(?: |%20)how(?: |%20)to(?: |%20)decompress/,
				);
			}
		},
	);
});

describe("bytes of one subject", () => {
	it.each(ways.filter(({ isJson }) => !isJson))(
		"are read later past the rate, and other subjects do not wait: $name",
		async (way) => {
			const clock = new FakeClock();
			const { address } = await serverWithTokens({
				runtime: { ...systemRuntime, clock },
				callLimits: { bytesPerSecond: 1_000, byteBurst: 10_000 },
			});
			const [path = list] = pathsOf(way);
			const send = (name: string, bytes: number) => {
				// A field that no request has: the bytes cost nothing but their reading.
				const message = new BinaryWriter().tag(999, WireType.LengthDelimited);
				const call = callOf(way, path, message.bytes(new Uint8Array(bytes)).finish());
				return rawCall(address, { ...call, headers: { ...call.headers, ...as(name) } });
			};
			let responses = 0;
			const calls = [70_000, 70_000].map((bytes) =>
				send("mallory", bytes).then((response) => {
					responses += 1;
					return response;
				}),
			);
			for (let call = 0; call < 5; call += 1) {
				expect(await send("alice", 100)).toMatch(/required/);
			}
			expect(responses).toBe(0);
			while (responses < calls.length) {
				await clock.advance(100);
				await new Promise((resolve) => setImmediate(resolve));
			}
			expect((await Promise.all(calls)).join()).toMatch(/required/);
		},
	);
});
