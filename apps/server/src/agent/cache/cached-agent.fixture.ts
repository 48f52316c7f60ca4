import { writeFileSync } from "node:fs";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import type { TypeLike } from "@plinth/resource";
import { type Logger, silentLogger } from "@plinth/runtime";
import { expect, vi } from "vitest";
import { Artist, musicModule } from "../../../testdata/music.ts";
import { tokensOf } from "../../callers.fixture.ts";
import { filesOf } from "../../certificates.fixture.ts";
import type { Server } from "../../server.ts";
import type { ServerOptions } from "../../server-options.ts";
import { startServer } from "../../started-server.fixture.ts";
import type { Agent, AgentContext } from "../agent.ts";
import type { AgentConfiguration } from "../agent-configuration.ts";
import { startTestAgent } from "../started-agent.fixture.ts";
import { cacheVersionHeader } from "./agent-cache.ts";

/** The credential of the agents. */
export const secret = "the-credential-of-the-agents";

/** What users may do, by the names of their policies; the token of a user is `<user>-token`. */
export const policies = `policies:
  agent: [{ operations: [operator:read], type: music.v1.Artist }]
  reader: [{ operations: [operator:read], type: "music.*" }]
  some: [{ operations: [operator:read], type: music.v1.Artist, namePrefix: a }]
  writer: [{ operations: ["*"] }]
`;

/** The users of the tests, with the names of their policies. */
export const users = { agent: "agent", reader: "reader", some: "some", writer: "writer" };

/** A server with a port for agents, and tokens. */
export interface CachedServer {
	readonly server: Server;
	/** The address of its port for agents. */
	readonly port: string;
	/** Replaces the access file, and waits until it is in effect. */
	setAccess(text: string): Promise<void>;
}

/** Starts a server with a port for agents. */
export async function startCachedServer(
	options: Partial<ServerOptions> = {},
	port = 0,
): Promise<CachedServer> {
	const { access, credential } = filesOf({
		access: `${policies}${tokensOf(users)}`,
		credential: secret,
	});
	const opened = Promise.withResolvers<string>();
	const logger: Logger = {
		...silentLogger,
		info: (fields, message) => {
			if (message === "listens for agents") {
				opened.resolve(`http://${String((fields as { address?: unknown }).address)}`);
			}
		},
	};
	const server = await startServer({
		modules: [musicModule()],
		access: { file: access },
		...options,
		agents: { listen: { host: "127.0.0.1", port }, credentialFile: credential },
		logger,
	});
	return {
		server,
		port: await opened.promise,
		async setAccess(text) {
			writeFileSync(access, text);
			await server.reload();
		},
	};
}

/** The options of a cached agent, in addition to those of its test agent. */
export interface CachedAgentOptions extends Partial<AgentContext> {
	readonly types?: readonly TypeLike[];
	readonly user?: keyof typeof users;
	readonly configuration?: Partial<AgentConfiguration>;
}

/** Starts an agent with a cache of artists. It may not be primed yet. */
export async function startCachedAgent(
	ports: readonly string[],
	{
		types = [Artist.type],
		user = "agent",
		configuration = {},
		...context
	}: CachedAgentOptions = {},
): Promise<Agent> {
	const { token, credential } = filesOf({ token: `${user}-token`, credential: secret });
	return startTestAgent(
		ports,
		{ cache: types, cacheTokenFile: token, serversCredentialFile: credential, ...configuration },
		context,
	);
}

/** Waits until the cache of an agent serves calls, or until it does not. */
export async function cacheIs(agent: Agent, state: "used" | "not used", type = "music.v1.Artist") {
	await expect
		.poll(async () => (await fetch(`${agent.address}/readyz`)).text(), { timeout: 300_000 })
		.toMatch(new RegExp(`cache of ${type}: ${state}`));
}

/** A client with a user's token, and what it has been told about caches. */
export interface CachedClient {
	readonly resources: Client<typeof ResourceService>;
	/** The headers of the last response. */
	headers(): Headers;
	/** Whether the last response came from a cache. */
	wasCached(): boolean;
}

/** A client of an agent or a server, by gRPC. */
export function clientOf(
	{ address }: Pick<Agent, "address">,
	user: string,
	requestHeaders: Readonly<Record<string, string>> = {},
): CachedClient {
	let headers = new Headers();
	const transport = createGrpcTransport({
		baseUrl: address,
		interceptors: [
			(next) => async (request) => {
				request.header.set("authorization", `Bearer ${user}-token`);
				for (const [name, value] of Object.entries(requestHeaders)) {
					request.header.set(name, value);
				}
				headers = new Headers();
				const response = await next(request);
				headers = response.header;
				return response;
			},
		],
	});
	return {
		resources: createClient(ResourceService, transport),
		headers: () => headers,
		wasCached: () => headers.has(cacheVersionHeader),
	};
}

/** Repeats a check with a client until it passes, and its response came from a cache. */
export async function whenCached(
	agent: Agent,
	check: (client: CachedClient) => Promise<void>,
): Promise<void> {
	await vi.waitFor(
		async () => {
			const client = clientOf(agent, "reader");
			await check(client);
			expect(client.wasCached()).toBe(true);
		},
		{ timeout: 300_000 },
	);
}

/** The sum of a metric over its labels that contain `label`, at an agent, or at a server with the users of the tests. */
export async function metric(
	{ address }: Pick<Agent, "address">,
	name: string,
	label = "",
): Promise<number> {
	const response = await fetch(`${address}/metrics`, {
		headers: { authorization: "Bearer writer-token" },
	});
	const text = await response.text();
	return [...text.matchAll(new RegExp(`^${name}(?:\\{.*${label}.*\\})? (\\d+)$`, "gm"))].reduce(
		(sum, [, value]) => sum + Number(value),
		0,
	);
}
