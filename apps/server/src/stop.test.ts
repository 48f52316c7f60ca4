import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import {
	createConnectTransport,
	createGrpcTransport,
	createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { typeOf } from "@plinth/resource";
import { describe, expect, it, onTestFinished } from "vitest";
import { JukeboxService } from "../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist } from "../testdata/music.ts";
import { musicModuleFile, ServerProcess, stuckModuleFile } from "./server-process.fixture.ts";

/** A connection by each protocol; those at even places use HTTP/1.1. */
function transportsTo(baseUrl: string): readonly Transport[] {
	return [
		createConnectTransport({ baseUrl, httpVersion: "1.1" }),
		createConnectTransport({ baseUrl, httpVersion: "2" }),
		createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
		createGrpcTransport({ baseUrl }),
	];
}

/**
 * What clients report that sent a call when the server had just closed an idle connection. HTTP/1.1 can't prevent it
 * (RFC 9112, section 9.5): the server keeps such connections open for a while, and a client on a busy machine may not
 * get to send its next call in that time.
 */
const connectionLost = /\b(?:write EPIPE|read ECONNRESET|write ECONNRESET|socket hang up)$/;

/**
 * The code that a client received; with the message, if it is not the one of a stop. A stream that was on its way
 * when the server sent GOAWAY is refused by HTTP/2. gRPC defines that as Unavailable
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#errors), Connect reports it as Internal.
 */
function codeOf(failure: unknown, maySendLate = false): string {
	const error = ConnectError.from(failure);
	const isRefused = error.message.endsWith("error code NGHTTP2_REFUSED_STREAM");
	const isLate = maySendLate && connectionLost.test(error.message);
	return error.code === Code.Unavailable || isRefused || isLate ? "Unavailable" : String(error);
}

describe("a stop under load", () => {
	it("loses no acknowledged write, and every client receives Unavailable", async () => {
		const folder = await mkdtemp(join(tmpdir(), "plinth-stop-"));
		onTestFinished(() => rm(folder, { recursive: true, force: true }));
		const flags = ["--listen", "127.0.0.1:0", "--data-dir", folder, "--module", musicModuleFile];
		const first = new ServerProcess(...flags);
		const baseUrl = await first.listening();
		const type = typeOf(Artist.type);
		const acknowledged = new Map<string, string>();
		const warm = Promise.withResolvers<void>();
		const transports = transportsTo(baseUrl);
		const writers = transports.flatMap((transport, each) =>
			[0, 1, 2].map(async (writer) => {
				const client = createClient(ResourceService, transport);
				for (let write = 0; ; write += 1) {
					const name = `artist-${each}-${writer}-${write}`;
					try {
						const { resource } = await client.write({ resource: artist(name) });
						acknowledged.set(name, resource?.version ?? "");
					} catch (failure) {
						return codeOf(failure, each % 2 === 0);
					}
					if (acknowledged.size === 300) {
						warm.resolve();
					}
				}
			}),
		);
		const watchers = transports.flatMap((transport) =>
			[0, 1, 2, 3, 4].map(async () => {
				try {
					for await (const _ of createClient(ResourceService, transport).watchList({ type })) {
						// Reads on until it is told to stop.
					}
					return "ended";
				} catch (failure) {
					return codeOf(failure);
				}
			}),
		);
		await warm.promise;
		first.kill("SIGTERM");
		expect(new Set(await Promise.all(watchers))).toEqual(new Set(["Unavailable"]));
		expect(new Set(await Promise.all(writers))).toEqual(new Set(["Unavailable"]));
		expect(await first.ended).toMatchObject({ code: 0, signal: null });

		const second = new ServerProcess(...flags);
		const client = createClient(
			ResourceService,
			createGrpcTransport({ baseUrl: await second.listening() }),
		);
		const { resources } = await client.list({ type, tenancy: {} });
		const found = new Map(resources.map(({ id, version }) => [id?.name ?? "", version]));
		expect(found).toEqual(new Map([...found, ...acknowledged]));
	});

	it("ends within its limit, and calls that don't finish receive Unavailable as well", async () => {
		const server = new ServerProcess(
			...["--listen", "127.0.0.1:0", "--storage", "memory"],
			...["--module", stuckModuleFile, "--limits-stop-timeout", "1s"],
		);
		const transports = transportsTo(await server.listening());
		const plays = transports.map((transport, each) =>
			createClient(JukeboxService, transport)
				.play({ song: `song-${each}` })
				.then(
					() => "ok",
					(failure: unknown) => codeOf(failure),
				),
		);
		await Promise.all(transports.map((_, each) => server.logs(new RegExp(`song-${each}`))));
		// These calls never end by themselves: without the limit, neither would the process.
		server.kill("SIGTERM");
		expect(await Promise.all(plays)).toEqual(transports.map(() => "Unavailable"));
		expect(await server.ended).toMatchObject({ code: 0, signal: null });
	});
});
