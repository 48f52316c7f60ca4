import { writeFileSync } from "node:fs";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createConnectTransport } from "@connectrpc/connect-web";
import { ResourceService, type WatchSetEvent } from "@plinth/proto";
import { TypeRegistry, typeOf } from "@plinth/resource";
import { tokenHash } from "@plinth/resource-service";
import { describe, expect, it } from "vitest";
import { Artist, artist, musicModule } from "../../testdata/music.ts";
import { filesOf } from "../certificates.fixture.ts";
import { metricReaches } from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";

const registry = new TypeRegistry([Artist]).messages();
const request = { type: typeOf(Artist.type) };

const transports: readonly (readonly [string, (baseUrl: string) => Transport])[] = [
	["gRPC", (baseUrl) => createGrpcTransport({ baseUrl })],
	[
		"Connect with fetch over HTTP/1.1",
		(baseUrl) => createConnectTransport({ baseUrl, useBinaryFormat: true }),
	],
	[
		"Connect in JSON with fetch over HTTP/1.1",
		(baseUrl) => createConnectTransport({ baseUrl, jsonOptions: { registry } }),
	],
];

function told({ watchId, content }: WatchSetEvent): string {
	if (content.case === "end") {
		return `${watchId}: ${Code[content.value.code]}: ${content.value.message}`;
	}
	const event = content.value?.event;
	const name = event?.case === "upsert" ? ` ${event.value.resource?.id?.name}` : "";
	return `${watchId}: ${event?.case}${name}`;
}

/** Opens a set, and returns what reads its next messages as text. */
function open(
	transport: Transport,
	watches: readonly { readonly id: string; readonly request: object }[],
	headers: Record<string, string> = {},
) {
	const end = new AbortController();
	const events = createClient(ResourceService, transport)
		.watchSet({ watches: [...watches] }, { signal: end.signal, headers })
		[Symbol.asyncIterator]();
	return {
		end: () => end.abort(),
		async take(count: number): Promise<readonly string[]> {
			const taken: string[] = [];
			while (taken.length < count) {
				const { value, done } = await events.next();
				if (done) {
					throw new Error(`the stream ended after ${taken}`);
				}
				taken.push(told(value));
			}
			return taken.toSorted();
		},
	};
}

describe.each(transports)("a set of watches, by %s", (_name, transportOf) => {
	it("sends the events of each watch, and the ends of those that fail", async () => {
		const { address } = await startServer({ modules: [musicModule()] });
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
		const { resource } = await client.write({ resource: artist("a") });
		const set = open(transportOf(address), [
			{ id: "all", request },
			{ id: "resumed", request: { ...request, afterVersion: resource?.version } },
			{ id: "future", request: { ...request, afterVersion: "1000000" } },
			{ id: "unknown", request: { type: { group: "no", groupVersion: "v1", kind: "Such" } } },
		]);
		expect(await set.take(4)).toEqual([
			"all: endOfSnapshot",
			"all: upsert a",
			expect.stringMatching(/^future: OutOfRange: .*watch again without a version$/),
			"unknown: InvalidArgument: resource type no.v1.Such not registered",
		]);
		await client.write({ resource: artist("b") });
		expect(await set.take(2)).toEqual(["all: upsert b", "resumed: upsert b"]);
		set.end();
	});

	it("counts each watch as a stream of the subject, until it ends", async () => {
		const { address } = await startServer({
			modules: [musicModule()],
			callLimits: { streamsPerSubject: 3 },
		});
		const ids = ["1", "2", "3", "4", "5"];
		const limit =
			"ResourceExhausted: too many streams from anyone: at most 3 at once; end some of them";
		const set = open(
			transportOf(address),
			ids.map((id) => ({ id, request })),
		);
		expect(await set.take(5)).toEqual([
			...["1", "2", "3"].map((id) => `${id}: endOfSnapshot`),
			...["4", "5"].map((id) => `${id}: ${limit}`),
		]);
		await metricReaches(address, "plinth_watch_sets_watches ", 3);
		const single = createClient(ResourceService, transportOf(address)).watchList(request);
		const refused = single[Symbol.asyncIterator]().next();
		await expect(refused.catch((error) => ConnectError.from(error).rawMessage)).resolves.toMatch(
			/^too many streams/,
		);
		set.end();
		await metricReaches(address, "plinth_watch_sets_watches ", 0);
		await metricReaches(address, "plinth_watch_sets_watches_ended_total", 3);
		await metricReaches(address, "plinth_streams_open", 0);
		const again = open(
			transportOf(address),
			ids.slice(0, 3).map((id) => ({ id, request })),
		);
		expect(await again.take(3)).toEqual(["1", "2", "3"].map((id) => `${id}: endOfSnapshot`));
		again.end();
	});

	it("has as many watches as the server allows", async () => {
		const { address } = await startServer({
			modules: [musicModule()],
			callLimits: { watchesPerSet: 2 },
		});
		const set = open(
			transportOf(address),
			["1", "2", "3"].map((id) => ({ id, request })),
		);
		await expect(set.take(1)).rejects.toThrow(
			"[invalid_argument] watches invalid: has 3 entries, more than 2: watch the others in further streams",
		);
	});

	it("shows each caller what it may see, until its rights change", async () => {
		const token = (name: string, policy: string) =>
			`  - { subject: ${name}, sha256: ${tokenHash(name)}, policies: [${policy}] }\n`;
		const accessOf = (operation: string) => `policies:
  all: [{ operations: ["*"] }]
  some: [{ operations: ["${operation}"], type: ${Artist.key}, namePrefix: seen- }]
tokens:
${token("admin", "all")}${token("viewer", "some")}`;
		const { access } = filesOf({ access: accessOf("operator:read") });
		const server = await startServer({ modules: [musicModule()], access: { file: access } });
		const { address } = server;
		const of = (name: string) => ({ authorization: `Bearer ${name}` });
		const namespaces = { type: { group: "tenancy", groupVersion: "v1", kind: "Namespace" } };
		const set = open(
			transportOf(address),
			[
				{ id: "artists", request },
				{ id: "namespaces", request: namespaces },
			],
			of("viewer"),
		);
		expect(await set.take(2)).toEqual([
			"artists: endOfSnapshot",
			expect.stringMatching(/^namespaces: PermissionDenied: .*viewer/),
		]);
		const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
		for (const name of ["hidden-1", "seen-1"]) {
			await client.write({ resource: artist(name) }, { headers: of("admin") });
		}
		expect(await set.take(1)).toEqual(["artists: upsert seen-1"]);
		writeFileSync(access, accessOf("operator:write"));
		const ended = expect(set.take(1)).rejects.toThrow(
			"[unauthenticated] the token has expired or was revoked: watch again with a valid token",
		);
		await server.reload();
		await ended;
	});
});
