import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf, Namespace, typeOf } from "@plinth/resource";
import { itWith } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { JukeboxService } from "../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist, musicModule } from "../testdata/music.ts";
import { curl, curlJson } from "./curl.fixture.ts";
import { createServer } from "./server.ts";
import { startServer } from "./started-server.fixture.ts";

const artistType = typeOf(Artist.type);
const milesJson = {
	id: { name: "miles", type: { group: "music", groupVersion: "v1", kind: "Artist" } },
	data: { "@type": "type.googleapis.com/music.v1.Artist", genre: "jazz" },
};

/** What a call failed with, for comparisons. */
async function failure(call: Promise<unknown>): Promise<unknown> {
	const error = await call.catch((reason: unknown) => reason);
	return error instanceof ConnectError
		? { code: Code[error.code], message: error.rawMessage }
		: error;
}

describe("one port", () => {
	itWith("curl")(
		"takes JSON by curl, gRPC over HTTP/2 and Connect's GET, of the same resources",
		async () => {
			const { address } = await startServer({ modules: [musicModule()] });

			const written = await curlJson(address, "Write", { resource: milesJson });
			expect(written).toMatchObject({ resource: milesJson });

			const grpc = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
			const read = await grpc.read({ id: idOf(Artist, "miles") });
			expect(read.resource?.id?.name).toBe("miles");

			const got = await curl(
				"--get",
				`${address}/plinth.resource.v1.ResourceService/Read`,
				...["--data-urlencode", "connect=v1", "--data-urlencode", "encoding=json"],
				...["--data-urlencode", `message=${JSON.stringify({ id: milesJson.id })}`],
			);
			expect(JSON.parse(got)).toEqual(written);
		},
	);

	itWith("curl")(
		"refuses misspelled fields, unknown types in data and messages that are too large",
		async () => {
			const { address } = await startServer({
				modules: [musicModule()],
				limits: { messageBytes: 10_000 },
			});
			expect(await curlJson(address, "Read", { idd: {} })).toMatchObject({
				code: "invalid_argument",
				message: expect.stringContaining("idd"),
			});
			const film = { ...milesJson, data: { "@type": "type.googleapis.com/film.v1.Film" } };
			expect(await curlJson(address, "Write", { resource: film })).toMatchObject({
				code: "invalid_argument",
				message: expect.stringContaining("film.v1.Film"),
			});
			const long = { ...milesJson, metadata: { notes: "x".repeat(20_000) } };
			expect(await curlJson(address, "Write", { resource: long })).toMatchObject({
				code: "resource_exhausted",
			});
		},
	);

	it("offers the services of modules, and hides what their bugs say", async () => {
		const { address } = await startServer({ modules: [musicModule()] });
		const jukebox = createClient(JukeboxService, createGrpcTransport({ baseUrl: address }));
		expect((await jukebox.play({ song: "so what" })).song).toBe("so what");
		expect(await failure(jukebox.hum({}))).toEqual({
			code: "Internal",
			message: "internal error",
		});
	});
});

const transports: readonly (readonly [string, (baseUrl: string) => Transport])[] = [
	["Connect over HTTP/1.1", (baseUrl) => createConnectTransport({ baseUrl, httpVersion: "1.1" })],
	["gRPC over HTTP/2", (baseUrl) => createGrpcTransport({ baseUrl })],
];

describe.each(transports)("a watch over a socket, by %s", (_name, transportOf) => {
	it("of an empty type ends its snapshot immediately", async () => {
		const { address } = await startServer({ modules: [musicModule()] });
		const client = createClient(ResourceService, transportOf(address));
		for await (const { event } of client.watchList({ type: artistType })) {
			expect(event.case).toBe("endOfSnapshot");
			break;
		}
	});

	it("sends all upserts, the end of the snapshot with its version, and then what changes", async () => {
		const { address } = await startServer({ modules: [musicModule()] });
		const client = createClient(ResourceService, transportOf(address));
		for (const name of ["miles", "ornette"]) {
			await client.write({ resource: artist(name) });
		}
		const seen: string[] = [];
		let snapshotVersion = "";
		for await (const { event, version } of client.watchList({ type: artistType })) {
			const resource =
				event.case === "upsert" || event.case === "delete" ? event.value.resource : undefined;
			seen.push(resource ? `${event.case} ${resource.id?.name}` : String(event.case));
			if (event.case === "endOfSnapshot") {
				snapshotVersion = version;
				await client.write({ resource: artist("cecil") });
				await client.delete({ id: idOf(Artist, "miles") });
			}
			if (event.case === "delete") {
				break;
			}
		}
		expect(seen).toEqual([
			"upsert miles",
			"upsert ornette",
			"endOfSnapshot",
			"upsert cecil",
			"delete miles",
		]);

		const later: string[] = [];
		const resumed = client.watchList({ type: artistType, afterVersion: snapshotVersion });
		for await (const { event } of resumed) {
			later.push(String(event.case));
			if (later.length === 2) {
				break;
			}
		}
		expect(later).toEqual(["upsert", "delete"]);
	});

	it("ends with Unavailable when the server stops", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const client = createClient(ResourceService, transportOf(server.address));
		const events = client.watchList({ type: artistType })[Symbol.asyncIterator]();
		await events.next();
		const end = failure(events.next());
		await server.stop();
		expect(await end).toEqual({
			code: "Unavailable",
			message: "the server is stopping: watch again",
		});
	});
});

describe("a stop", () => {
	it("lets running calls finish, and refuses new ones as Unavailable", async () => {
		const released = Promise.withResolvers<void>();
		const playing = Promise.withResolvers<void>();
		const server = await startServer({
			modules: [musicModule(released.promise)],
			logger: {
				debug: () => {},
				info: (_fields, message) => message === "playing" && playing.resolve(),
				warn: () => {},
				error: () => {},
			},
		});
		const transport = createConnectTransport({ baseUrl: server.address, httpVersion: "1.1" });
		const jukebox = createClient(JukeboxService, transport);
		const play = jukebox.play({ song: "so what" });
		await playing.promise;
		const stopped = server.stop();
		expect(await failure(jukebox.play({ song: "too late" }))).toMatchObject({
			code: "Unavailable",
		});
		released.resolve();
		expect((await play).song).toBe("so what");
		await stopped;
	});

	it("waits no longer than its limit for calls that don't finish", async () => {
		const playing = Promise.withResolvers<void>();
		const server = await startServer({
			modules: [musicModule(new Promise(() => {}))],
			stopLimitMs: 20,
			logger: {
				debug: () => {},
				info: (_fields, message) => message === "playing" && playing.resolve(),
				warn: () => {},
				error: () => {},
			},
		});
		const transport = createConnectTransport({ baseUrl: server.address, httpVersion: "2" });
		const play = failure(createClient(JukeboxService, transport).play({ song: "so what" }));
		await playing.promise;
		await server.stop();
		expect(await play).toMatchObject({ code: "Unavailable" });
	});

	it("logs a part that fails meanwhile", async () => {
		const failed = new Error("the controllers could not be stopped");
		const errors: unknown[] = [];
		const server = await startServer({
			logger: {
				debug: () => {},
				info: (_fields, message) => {
					if (message === "controller stopped") {
						throw failed;
					}
				},
				warn: () => {},
				error: ({ err }, message) => errors.push([message, err]),
			},
		});
		await server.stop();
		expect(errors).toContainEqual([
			"a part of the server failed while the server was stopping",
			failed,
		]);
	});

	it("can be requested twice, before the start, and during the start", async () => {
		const server = await startServer();
		await Promise.all([server.stop(), server.stop()]);
		await server.ended;

		const options = {
			storage: { kind: "memory" },
			listen: { host: "127.0.0.1", port: 0 },
		} as const;
		const never = createServer(options);
		await never.stop();
		await expect(never.start()).rejects.toThrow("the server is stopped: a server starts only once");

		const hasty = createServer(options);
		const starting = expect(hasty.start()).rejects.toThrow(
			"the server was stopped while it was starting",
		);
		await hasty.stop();
		await starting;
		await hasty.ended;
	});
});

describe("a start", () => {
	it("puts the default partition and namespace in place", async () => {
		const server = await startServer();
		const { resource } = await server.client.read({ id: idOf(Namespace, "default") });
		expect(resource?.id?.tenancy?.partition).toBe("default");
	});

	it("in memory issues later versions than servers before it, so that their watches begin again", async () => {
		const first = await startServer({ modules: [musicModule()] });
		const { resource: old } = await first.client.write({ resource: artist("miles") });
		await first.stop();
		const second = await startServer({ modules: [musicModule()] });
		const { resource } = await second.client.write({ resource: artist("nina") });
		expect(Number(resource?.version)).toBeGreaterThan(Number(old?.version));
		const resumed = second.client.watchList({
			type: Artist.type,
			afterVersion: old?.version ?? "",
		});
		await expect(resumed[Symbol.asyncIterator]().next()).rejects.toMatchObject({
			code: Code.OutOfRange,
		});
	});

	it("that fails leaves nothing behind", async () => {
		const first = await startServer();
		const port = Number(new URL(first.address).port);
		const second = createServer({
			storage: { kind: "memory" },
			listen: { host: "127.0.0.1", port },
		});
		await expect(second.start()).rejects.toThrow(`can't listen on 127.0.0.1:${port}`);
		await second.ended;
		expect(() => second.address).toThrow("the server is not started");
	});

	it("waits before it opens the storage, once its options are known to be valid", async () => {
		const options = {
			storage: { kind: "memory" },
			listen: { host: "127.0.0.1", port: 0 },
		} as const;
		const begin = Promise.withResolvers<void>();
		const asked: string[] = [];
		const beforeStorage = async (name: string) => {
			asked.push(name);
			await begin.promise;
		};
		const invalid = createServer({
			...options,
			modules: [musicModule(), musicModule()],
			beforeStorage: () => beforeStorage("invalid"),
		});
		await expect(invalid.start()).rejects.toThrow("two modules are named music");

		const stopped = createServer({ ...options, beforeStorage: () => beforeStorage("stopped") });
		const interrupted = expect(stopped.start()).rejects.toThrow("stopped while it was starting");
		await expect.poll(() => asked).toEqual(["stopped"]);
		await stopped.stop();
		await interrupted;

		const next = createServer({ ...options, beforeStorage: () => beforeStorage("next") });
		const starting = next.start();
		await expect.poll(() => asked).toEqual(["stopped", "next"]);
		expect(() => next.address).toThrow("the server is not started");
		begin.resolve();
		await starting;
		await next.stop();
	});

	it("gives programs that embed it a client that clones", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const resource = artist("miles");
		await server.client.write({ resource });
		const first = await server.client.read({ id: idOf(Artist, "miles") });
		const second = await server.client.read({ id: idOf(Artist, "miles") });
		expect(first.resource).toEqual(second.resource);
		expect(first.resource).not.toBe(second.resource);
	});
});
