import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import {
	createConnectTransport,
	createGrpcTransport,
	createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { typeOf } from "@plinth/resource";
import { describe, expect, it, onTestFinished } from "vitest";
import { Artist, artist } from "../testdata/music.ts";
import { musicModuleFile, ServerProcess } from "./testing/server-process.fixture.ts";

describe("a stop under load", () => {
	it("loses no acknowledged write, and tells every client Unavailable", async () => {
		const folder = await mkdtemp(join(tmpdir(), "plinth-stop-"));
		onTestFinished(() => rm(folder, { recursive: true, force: true }));
		const flags = ["--listen", "127.0.0.1:0", "--data-dir", folder, "--module", musicModuleFile];
		const first = new ServerProcess(...flags);
		const baseUrl = await first.listening();
		const type = typeOf(Artist.type);
		const acknowledged = new Map<string, string>();
		const warm = Promise.withResolvers<void>();
		const transports = [
			createConnectTransport({ baseUrl, httpVersion: "1.1" }),
			createConnectTransport({ baseUrl, httpVersion: "2" }),
			createGrpcTransport({ baseUrl }),
			createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
		];
		const codeOf = (failure: unknown) => Code[ConnectError.from(failure).code];
		const writers = transports.flatMap((transport, each) =>
			[0, 1, 2].map(async (writer) => {
				const client = createClient(ResourceService, transport);
				for (let write = 0; ; write += 1) {
					const name = `artist-${each}-${writer}-${write}`;
					try {
						const { resource } = await client.write({ resource: artist(name) });
						acknowledged.set(name, resource?.version ?? "");
					} catch (failure) {
						return codeOf(failure);
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
});
