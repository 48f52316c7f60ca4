import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { createConnectTransport } from "@connectrpc/connect-web";
import { ResourceService } from "@plinth/proto";
import { idOf, typeOf } from "@plinth/resource";
import { temporaryFolder } from "@plinth/test-support";
import { type ConnectionState, WatchClient } from "@plinth/watch-client";
import { expect, it, onTestFinished } from "vitest";
import { Artist, artist, musicModule } from "../../testdata/music.ts";
import { metric } from "../raw-calls.fixture.ts";
import { startServer } from "../started-server.fixture.ts";

it("a client that uses fetch follows eight watches over one stream, across a restart of the server", async () => {
	const directory = await temporaryFolder();
	const options = {
		modules: [musicModule()],
		storage: { kind: "sqlite", directory },
	} as const;
	const first = await startServer(options);
	const { address } = first;
	const port = Number(new URL(address).port);
	const states: ConnectionState["kind"][] = [];
	const watches = new WatchClient({
		client: createClient(
			ResourceService,
			createConnectTransport({ baseUrl: address, useBinaryFormat: true }),
		),
		onConnection: ({ kind }) => states.push(kind),
	});
	onTestFinished(() => watches.close());
	/** For each watch, the versions of the artists that it knows, and how often it was told of each version. */
	const known = Array.from({ length: 8 }, () => new Map<string, string>());
	const told = Array.from({ length: 8 }, () => new Map<string, number>());
	for (const [index, artists] of known.entries()) {
		watches.watch({ type: typeOf(Artist.type), namePrefix: index % 2 ? "a" : "" }, (update) => {
			if (update.kind === "snapshot-begins") {
				artists.clear();
			} else if (update.kind === "present") {
				artists.set(update.resource.id?.name ?? "", update.resource.version);
			} else if (update.kind === "changes") {
				told[index]?.set(update.version, (told[index]?.get(update.version) ?? 0) + 1);
				for (const { kind, resource } of update.changes) {
					const name = resource.id?.name ?? "";
					if (kind === "upsert") {
						artists.set(name, resource.version);
					} else {
						artists.delete(name);
					}
				}
			}
		});
	}
	const client = createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
	const stored = async () => {
		const { resources } = await client.list({ type: typeOf(Artist.type), tenancy: {} });
		return Object.fromEntries(resources.map(({ id, version }) => [id?.name ?? "", version]));
	};
	/** Resolves when all watches know what is stored. */
	const allKnow = async () => {
		const all = Object.entries(await stored());
		for (const [index, artists] of known.entries()) {
			const inView = all.filter(([name]) => index % 2 === 0 || name.startsWith("a"));
			await expect
				.poll(() => Object.fromEntries(artists), { timeout: 300_000 })
				.toEqual(Object.fromEntries(inView));
		}
	};
	await client.write({ resource: artist("a1") });
	await client.write({ resource: artist("b1") });
	await allKnow();
	expect(await metric(address, "plinth_streams_open", "WatchSet")).toBe(1);
	expect(await metric(address, "plinth_watch_sets_watches ")).toBe(8);
	await first.stop();
	await expect.poll(() => watches.state.kind).toBe("lost");
	await startServer({ ...options, listen: { host: "127.0.0.1", port } });
	await client.write({ resource: artist("a2") });
	await client.delete({ id: idOf(Artist, "b1") });
	await allKnow();
	// It may try more than once while the server starts.
	const changes = states.filter((kind, index) => kind !== states[index - 1]);
	expect(changes).toEqual(["connecting", "connected", "lost", "connected"]);
	for (const versions of told) {
		expect([...versions.values()].every((times) => times === 1)).toBe(true);
	}
});
