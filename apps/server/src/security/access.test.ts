import { writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { ControllerService, ResourceService } from "@plinth/proto";
import { ServerService } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { idOf, Namespace, resourceOf, typeOf } from "@plinth/resource";
import { tokenHash } from "@plinth/resource-service";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { exportJWK, generateKeyPair, type JWK, type JWTPayload, SignJWT, UnsecuredJWT } from "jose";
import { describe, expect, it, onTestFinished } from "vitest";
import { JukeboxService } from "../../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist, musicModule } from "../../testdata/music.ts";
import { filesOf } from "../certificates.fixture.ts";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../gen/grpc/reflection/v1/reflection_pb.ts";
import type { Server } from "../server.ts";
import { startServer } from "../started-server.fixture.ts";

const issuer = "https://issuer.test";
const audience = "plinth";

const rules = `
policies:
  everything: [{ operations: ["*"] }]
  reader: [{ operations: [operator:read], type: music.*, namespace: default }]
  prefixed: [{ operations: [operator:read, operator:write], type: music.v1.Artist, namePrefix: jazz- }]
  metrics: [{ operations: [operator:read], type: internal.v1.Metrics }]
  anything-prefixed: [{ operations: ["*"], namePrefix: jazz- }]
  nothing: []
`;

function tokenEntry(token: string, policies: string, more = ""): string {
	return `  - { subject: ${token}, sha256: ${tokenHash(token)}, policies: [${policies}]${more} }\n`;
}

const tokens = `tokens:\n${[
	"everything",
	"reader",
	"prefixed",
	"metrics",
	"nothing",
	"anything-prefixed",
]
	.map((name) => tokenEntry(`${name}-token`, name))
	.join("")}${tokenEntry("expired-token", "everything", ", expires: 2020-01-01T00:00:00Z")}`;

const claims = `claims:
  - { claim: groups, value: staff, policies: [everything] }
  - { claim: sub, value: bob, policies: [reader] }
`;

/** Keys of an issuer, and tokens that it signs. */
async function createIssuer() {
	const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
	const jwk: JWK = { ...(await exportJWK(publicKey)), kid: "one", alg: "ES256", use: "sig" };
	const nowSeconds = () => Math.floor(Date.now() / 1_000);
	const claimsOf = (more: Record<string, unknown>) => ({
		...{ iss: issuer, aud: audience, sub: "alice", groups: ["staff"] },
		...{ iat: nowSeconds(), exp: nowSeconds() + 600 },
		...more,
	});
	return {
		jwks: JSON.stringify({ keys: [jwk] }),
		privateKey,
		claimsOf,
		sign: (more: Record<string, unknown> = {}, kid = "one") =>
			new SignJWT(claimsOf(more)).setProtectedHeader({ alg: "ES256", kid }).sign(privateKey),
	};
}

type Issuer = Awaited<ReturnType<typeof createIssuer>>;

async function startSecured(issued: Issuer, access = `${rules}${tokens}${claims}`) {
	const files = filesOf({ access, keys: issued.jwks });
	const lines: unknown[] = [];
	const log = (fields: unknown, message: string) => lines.push([fields, message]);
	const server = await startServer({
		modules: [musicModule()],
		access: { file: files.access, jwt: { keys: { file: files.keys }, issuer, audience } },
		logger: { debug: log, info: log, warn: log, error: log },
	});
	return { server, files, lines };
}

function as(token: string | undefined) {
	return token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } };
}

function clientOf({ address }: Server) {
	return createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
}

async function outcome(call: Promise<unknown>): Promise<string> {
	try {
		await call;
		return "ok";
	} catch (failure) {
		return Code[ConnectError.from(failure).code];
	}
}

describe("a token", () => {
	it("is needed, known, good now and rightly signed, by each method", async () => {
		const issued = await createIssuer();
		const stranger = await createIssuer();
		const { server } = await startSecured(issued);
		const transport = createGrpcTransport({ baseUrl: server.address });
		const client = createClient(ResourceService, transport);
		await client.write({ resource: artist("miles") }, as("everything-token"));
		const type = typeOf(Artist.type);
		const id = idOf(Artist, "miles");
		const methods = {
			read: (token?: string) => client.read({ id }, as(token)),
			write: (token?: string) => client.write({ resource: artist("miles") }, as(token)),
			writeStatus: (token?: string) => client.writeStatus({ id, key: "k" }, as(token)),
			list: (token?: string) => client.list({ type, tenancy: {} }, as(token)),
			listByOwner: (token?: string) => client.listByOwner({ owner: id }, as(token)),
			delete: (token?: string) => client.delete({ id: idOf(Artist, "nobody") }, as(token)),
			mutateAndValidate: (token?: string) =>
				client.mutateAndValidate({ resource: artist("miles") }, as(token)),
			watchList: async (token?: string) => {
				for await (const _ of client.watchList({ type }, as(token))) {
					break;
				}
			},
			play: (token?: string) => createClient(JukeboxService, transport).play({}, as(token)),
			listControllers: (token?: string) =>
				createClient(ControllerService, transport).listControllers({}, as(token)),
			reflection: async (token?: string) => {
				const reflection = createClient(ServerReflection, transport);
				async function* ask() {
					yield { messageRequest: { case: "listServices" as const, value: "" } };
				}
				for await (const _ of reflection.serverReflectionInfo(ask(), as(token))) {
					break;
				}
			},
		};
		const nowSeconds = Math.floor(Date.now() / 1_000);
		const [header, payload, signature] = (await issued.sign()).split(".");
		const forged = Buffer.from(JSON.stringify(issued.claimsOf({ sub: "root" }))).toString(
			"base64url",
		);
		const secret = new TextEncoder().encode(issued.jwks);
		const refused: Record<string, string | undefined> = {
			"none at all": undefined,
			unknown: "wrong-token",
			"a hash": tokenHash("everything-token"),
			expired: "expired-token",
			"a JWT that expired": await issued.sign({ exp: nowSeconds - 60 }),
			"a JWT without expiry": await issued.sign({ exp: undefined }),
			"a JWT for later": await issued.sign({ nbf: nowSeconds + 600 }),
			"a JWT of another issuer": await issued.sign({ iss: "https://other.test" }),
			"a JWT for others": await issued.sign({ aud: "others" }),
			"a JWT for nobody": await issued.sign({ aud: undefined }),
			"a JWT of another key": await stranger.sign(),
			"a JWT of a key that is not there": await issued.sign({}, "two"),
			"a JWT with alg none": new UnsecuredJWT(issued.claimsOf({})).encode(),
			"a JWT signed with the public key as a secret": await new SignJWT(issued.claimsOf({}))
				.setProtectedHeader({ alg: "HS256", kid: "one" })
				.sign(secret),
			"a JWT whose claims were changed": `${header}.${forged}.${signature}`,
			"a JWT without signature": `${header}.${payload}.`,
		};
		const results: Record<string, Record<string, string>> = {};
		for (const [what, token] of Object.entries(refused)) {
			for (const [name, call] of Object.entries(methods)) {
				results[what] = { ...results[what], [name]: await outcome(call(token)) };
			}
		}
		const unauthenticated = Object.fromEntries(
			Object.keys(methods).map((name) => [name, "Unauthenticated"]),
		);
		expect(results).toEqual(
			Object.fromEntries(Object.keys(refused).map((what) => [what, unauthenticated])),
		);
		for (const good of ["everything-token", await issued.sign()]) {
			expect(await outcome(methods.read(good))).toBe("ok");
			expect(await outcome(methods.watchList(good))).toBe("ok");
			expect(await outcome(methods.reflection(good))).toBe("ok");
		}
	});

	it("may stand in either header, and is never in a message or a log", async () => {
		const issued = await createIssuer();
		const { server, lines } = await startSecured(issued);
		const client = clientOf(server);
		const id = idOf(Artist, "miles");
		const jwt = await issued.sign({ exp: 1 });
		for (const options of [
			{ headers: { "x-plinth-token": "secret-of-mine" } },
			{ headers: { authorization: "Basic secret-of-mine" } },
			as(jwt),
		]) {
			const failure = await client.read({ id }, options).catch(ConnectError.from);
			expect(failure).toMatchObject({ code: Code.Unauthenticated });
			expect(String(failure)).not.toMatch(/secret-of-mine|eyJ|alice/);
		}
		await client.write(
			{ resource: artist("miles", "secret-genre") },
			{
				headers: { "x-plinth-token": "everything-token" },
			},
		);
		await client.write({ resource: artist("miles") }, as("secret-of-mine")).catch(() => {});
		const logged = JSON.stringify(lines);
		expect(logged).not.toMatch(/secret-of-mine|secret-genre|eyJ/);
		expect(logged).not.toContain(tokenHash("everything-token"));
	});
});

describe("a policy that is too narrow", () => {
	it("denies each method in the same way whether its target exists or not", async () => {
		const { server } = await startSecured(await createIssuer());
		const client = clientOf(server);
		await client.write({ resource: artist("miles") }, as("everything-token"));
		const denied = as("nothing-token");
		const type = typeOf(Artist.type);
		const messages = new Map<string, Set<string>>();
		for (const name of ["miles", "nobody"]) {
			for (const namespace of ["default", "nowhere"]) {
				const id = { name, type, tenancy: { partition: "default", namespace } };
				const resource = { id };
				const calls: Record<string, Promise<unknown>> = {
					read: client.read({ id }, denied),
					write: client.write({ resource }, denied),
					writeStatus: client.writeStatus(
						{
							id: { ...id, uid: "01J00000000000000000000000" },
							key: "k",
							status: { observedGeneration: "01J00000000000000000000000" },
						},
						denied,
					),
					delete: client.delete({ id }, denied),
					mutateAndValidate: client.mutateAndValidate({ resource }, denied),
					list: client.list({ type, tenancy: { namespace } }, denied),
					listByOwner: client.listByOwner(
						{ owner: { ...id, uid: "01J00000000000000000000000" } },
						denied,
					),
					watchList: (async () => {
						for await (const _ of client.watchList({ type, tenancy: { namespace } }, denied)) {
							break;
						}
					})(),
				};
				for (const [method, call] of Object.entries(calls)) {
					const failure = await call.then(() => "ok", ConnectError.from);
					messages.set(method, (messages.get(method) ?? new Set()).add(String(failure)));
				}
			}
		}
		for (const [method, texts] of messages) {
			expect([method, ...texts]).toEqual([
				method,
				expect.stringMatching(/^ConnectError: \[permission_denied\] nothing-token lacks operator:/),
			]);
		}
	});

	it("shows in lists and watches only what it allows", async () => {
		const { server } = await startSecured(await createIssuer());
		const client = clientOf(server);
		for (const name of ["jazz-miles", "rock-jimi"]) {
			await client.write({ resource: artist(name) }, as("everything-token"));
		}
		const type = typeOf(Artist.type);
		const { resources } = await client.list({ type, tenancy: {} }, as("prefixed-token"));
		expect(resources.map(({ id }) => id?.name)).toEqual(["jazz-miles"]);
		expect(
			await outcome(client.read({ id: idOf(Artist, "rock-jimi") }, as("prefixed-token"))),
		).toBe("PermissionDenied");
		const seen: string[] = [];
		for await (const { event } of client.watchList({ type }, as("prefixed-token"))) {
			if (event.case === "upsert") {
				seen.push(event.value.resource?.id?.name ?? "");
			}
			if (event.case === "endOfSnapshot") {
				await client.write({ resource: artist("rock-janis") }, as("everything-token"));
				await client.write({ resource: artist("jazz-nina") }, as("prefixed-token"));
			}
			if (seen.length === 2) {
				break;
			}
		}
		expect(seen).toEqual(["jazz-miles", "jazz-nina"]);
		expect(await outcome(client.write({ resource: artist("x") }, as("reader-token")))).toBe(
			"PermissionDenied",
		);
	});

	it("opens neither metrics nor reports with a rule for a prefix of names", async () => {
		const { server } = await startSecured(await createIssuer());
		const headers = { authorization: "Bearer anything-prefixed-token" };
		expect((await fetch(`${server.address}/metrics`, { headers })).status).toBe(403);
		const transport = createGrpcTransport({ baseUrl: server.address });
		const controllers = createClient(ControllerService, transport);
		expect(await outcome(controllers.listControllers({}, { headers }))).toBe("PermissionDenied");
		const servers = createClient(ServerService, transport);
		expect(await outcome(servers.getOverview({}, { headers }))).toBe("PermissionDenied");
		expect(await outcome(servers.getOverview({}, as("everything-token")))).toBe("ok");
		expect(await outcome(controllers.listControllers({}, as("everything-token")))).toBe("ok");
	});

	it("applies to metrics; health needs no token", async () => {
		const { server } = await startSecured(await createIssuer());
		const status = async (token?: string) => {
			const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
			const response = await fetch(`${server.address}/metrics`, { headers });
			await response.text();
			return response.status;
		};
		expect([await status(), await status("wrong"), await status("reader-token")]).toEqual([
			401, 401, 403,
		]);
		expect(await status("metrics-token")).toBe(200);
		const health = createClient(Health, createGrpcTransport({ baseUrl: server.address }));
		expect((await health.check({})).status).toBe(1);
		expect((await fetch(`${server.address}/readyz`)).status).toBe(200);
	});
});

describe("a file that changes", () => {
	it("ends watches of tokens whose rights have changed, and no others", async () => {
		const issued = await createIssuer();
		const { server, files } = await startSecured(issued);
		const client = clientOf(server);
		const type = typeOf(Artist.type);
		const open = async (token: string) => {
			const events = client.watchList({ type }, as(token))[Symbol.asyncIterator]();
			await events.next();
			const next = events.next().then(
				() => "event",
				(failure) => Code[ConnectError.from(failure).code],
			);
			return { next, close: () => events.return?.() };
		};
		const staff = await issued.sign();
		const [reader, everything, jwt] = [
			await open("reader-token"),
			await open("everything-token"),
			await open(staff),
		];
		const narrower = `${rules}${tokens}${claims}`
			.replace("type: music.*, namespace: default", "type: other.*")
			.replace("value: staff", "value: owners");
		writeFileSync(files.access, narrower);
		await server.reload();
		expect(await reader.next).toBe("Unauthenticated");
		expect(await jwt.next).toBe("Unauthenticated");
		expect(await outcome(client.list({ type, tenancy: {} }, as("reader-token")))).toBe(
			"PermissionDenied",
		);
		expect(await outcome(client.list({ type, tenancy: {} }, as(staff)))).toBe("PermissionDenied");
		await client.write({ resource: artist("miles") }, as("everything-token"));
		expect(await everything.next).toBe("event");
		await everything.close();
	});

	it("and is malformed then is not taken", async () => {
		const { server, files, lines } = await startSecured(await createIssuer());
		const client = clientOf(server);
		writeFileSync(files.access, "policies: 5\n");
		await server.reload();
		expect(JSON.stringify(lines)).toContain(`${files.access}:1:1: policies: `);
		const type = typeOf(Artist.type);
		expect(await outcome(client.list({ type, tenancy: {} }, as("reader-token")))).toBe("ok");
	});

	it("refuses tokens of removed keys, and ends their watches", async () => {
		const issued = await createIssuer();
		const { server, files } = await startSecured(issued);
		const client = clientOf(server);
		const token = await issued.sign();
		const id = idOf(Namespace, "default");
		expect(await outcome(client.read({ id }, as(token)))).toBe("ok");
		const type = typeOf(Artist.type);
		const events = client.watchList({ type }, as(token))[Symbol.asyncIterator]();
		await events.next();
		const next = outcome(events.next());
		writeFileSync(files.keys, (await createIssuer()).jwks);
		await server.reload();
		expect(await next).toBe("Unauthenticated");
		expect(await outcome(client.read({ id }, as(token)))).toBe("Unauthenticated");
	});

	it.each([
		[
			"policies: {}\ntokens: [{ subject: a, sha256: abc, policies: [] }]\n",
			/:2:\d+: tokens\.0\.sha256: must be 64/,
		],
		[`policies: {}\ntokens:\n${tokenEntry("a", "gone")}`, /:3:\d+: there is no policy named gone/],
		[
			`policies: {}\ntokens:\n${tokenEntry("a", "")}${tokenEntry("a", "")}`,
			/:4:\d+: this token already has an entry/,
		],
		[
			"policies:\n  p: [{ operations: [a], tpye: b }]\n",
			/:2:\d+: policies\.p\.0: Unrecognized key: "tpye"/,
		],
		["tokens: []\n", /policies/],
	])("and is wrong from the start stops it: %j", async (content, message) => {
		const files = filesOf({ access: content });
		await expect(startServer({ access: { file: files.access } })).rejects.toThrow(message);
	});
});

describe("a watch", () => {
	it("ends when its token expires", async () => {
		const clock = new FakeClock({ nowMs: Date.parse("2030-01-01T00:00:00Z") });
		const files = filesOf({
			access: `${rules}tokens:\n${tokenEntry("brief", "everything", ", expires: 2030-01-01T01:00:00Z")}`,
		});
		const server = await startServer({
			runtime: { ...systemRuntime, clock },
			modules: [musicModule()],
			access: { file: files.access },
		});
		const type = typeOf(Artist.type);
		const client = clientOf(server);
		const events = client.watchList({ type }, as("brief"))[Symbol.asyncIterator]();
		await events.next();
		const next = outcome(events.next());
		await clock.advance(3_600_000);
		expect(await next).toBe("Unauthenticated");
		expect(await outcome(client.list({ type, tenancy: {} }, as("brief")))).toBe("Unauthenticated");
	});
});

describe("the subject of a JWT", () => {
	it.each([[""], [7], [null], [["alice"]], [{}], [true]])(
		"is a string that is not empty: %j",
		async (sub) => {
			const issued = await createIssuer();
			const { server } = await startSecured(issued);
			const token = await new SignJWT({ ...issued.claimsOf({}), sub } as object as JWTPayload)
				.setProtectedHeader({ alg: "ES256", kid: "one" })
				.sign(issued.privateKey);
			const read = clientOf(server).read({ id: idOf(Namespace, "default") }, as(token));
			await expect(read).rejects.toThrow(
				"[unauthenticated] the token is not valid for this server, or not yet: its claim sub is not accepted",
			);
		},
	);
});

describe("keys at an address", () => {
	it("are bounded: a response of more than 1 MiB is not read to its end", async () => {
		const issued = await createIssuer();
		let isEndless = true;
		const closed = Promise.withResolvers<void>();
		const keyServer = createHttpServer((_request, response) => {
			if (!isEndless) {
				response.end(`${" ".repeat(1_000_000)}${issued.jwks}`);
				return;
			}
			response.once("close", () => closed.resolve());
			const spaces = Buffer.alloc(64 * 1024, " ");
			const more = () => {
				while (!response.destroyed && response.write(spaces)) {}
			};
			response.on("drain", more);
			more();
		});
		await new Promise<void>((resolve) => keyServer.listen(0, "127.0.0.1", resolve));
		onTestFinished(() => {
			keyServer.closeAllConnections();
			keyServer.close();
		});
		const bound = keyServer.address();
		const port = typeof bound === "object" && bound !== null ? bound.port : 0;
		const files = filesOf({ access: `${rules}${claims}` });
		const warnings: unknown[] = [];
		const server = await startServer({
			access: {
				file: files.access,
				jwt: { keys: { url: new URL(`http://127.0.0.1:${port}/keys`) }, issuer, audience },
			},
			logger: {
				debug: () => {},
				info: () => {},
				warn: ({ err }) => warnings.push(String(err)),
				error: () => {},
			},
		});
		const client = clientOf(server);
		const token = as(await issued.sign());
		const id = idOf(Namespace, "default");
		expect(await outcome(client.read({ id }, token))).toBe("Unavailable");
		await closed.promise;
		expect(warnings.join()).toMatch(/more than 1048576 bytes/);
		isEndless = false;
		expect(await outcome(client.read({ id }, token))).toBe("ok");
	});

	it("are fetched when they are needed, and their absence is Unavailable", async () => {
		const issued = await createIssuer();
		let isUp = false;
		const keyServer = createHttpServer((_request, response) => {
			response.statusCode = isUp ? 200 : 500;
			response.end(isUp ? issued.jwks : "");
		});
		await new Promise<void>((resolve) => keyServer.listen(0, "127.0.0.1", resolve));
		onTestFinished(() => {
			keyServer.close();
		});
		const bound = keyServer.address();
		const port = typeof bound === "object" && bound !== null ? bound.port : 0;
		const files = filesOf({ access: `${rules}${claims}` });
		const server = await startServer({
			access: {
				file: files.access,
				jwt: { keys: { url: new URL(`http://127.0.0.1:${port}/keys`) }, issuer, audience },
			},
		});
		const client = clientOf(server);
		const token = as(await issued.sign());
		const id = idOf(Namespace, "default");
		expect(await outcome(client.read({ id }, token))).toBe("Unavailable");
		isUp = true;
		expect(await outcome(client.read({ id }, token))).toBe("ok");
	});
});

describe("a server without tokens", () => {
	it("does not accept connections from other machines, unless allowAnonymous is set", async () => {
		const beyond = { host: "0.0.0.0", port: 0 };
		await expect(startServer({ listen: beyond })).rejects.toThrow(/reachable from other machines/);
		const server = await startServer({ listen: beyond, allowAnonymous: true });
		const port = new URL(server.address).port;
		const client = createClient(
			ResourceService,
			createConnectTransport({ baseUrl: `http://127.0.0.1:${port}`, httpVersion: "1.1" }),
		);
		expect(await outcome(client.read({ id: idOf(Namespace, "default") }))).toBe("ok");
		await client.write({ resource: resourceOf(Namespace, { id: idOf(Namespace, "jazz") }) });
	});
});
