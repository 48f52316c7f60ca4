import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { defineController } from "@plinth/controller";
import { EventService, ResourceService } from "@plinth/proto";
import { idOf, Namespace } from "@plinth/resource";
import { PolicyAuthorizer } from "@plinth/resource-service";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { defineModule, type Module } from "../module/index.ts";
import type { Server } from "../server.ts";
import { startServer } from "../started-server.fixture.ts";

/** A module whose controller tells of each artist. */
function agency(): Module {
	const agent = defineController({
		name: "agent",
		manages: Artist,
		reconcile: async (context, { id }) =>
			context.event({ reason: "Booked", message: `${id.name} was booked` }),
	});
	return defineModule({ name: "agency", types: [Artist], controllers: [agent] });
}

function eventsOf(server: Server) {
	const transport = createConnectTransport({ baseUrl: server.address, httpVersion: "2" });
	return createClient(EventService, transport);
}

/** Waits until the server shows so many events. */
async function shown(server: Server, count: number) {
	const client = eventsOf(server);
	return vi.waitFor(async () => {
		const { events } = await client.listEvents({});
		expect(events).toHaveLength(count);
		return events;
	}, 300_000);
}

describe("EventService", () => {
	it("tells only of resources that the caller may read", async () => {
		const authorizer = new PolicyAuthorizer();
		const grant = (subject: string, operations: string[], type: string) =>
			authorizer.grant(subject, { subject, rules: [{ operations, type }] });
		grant("operator", ["*"], "*");
		grant("fan", ["operator:read"], "music.*");
		grant("tenant", ["operator:read"], "tenancy.*");
		const server = await startServer({ authorizer, modules: [agency()] });
		const events = eventsOf(server);
		const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
		await server.client.write({ resource: artist("miles") });
		await vi.waitFor(async () => {
			const all = await events.listEvents({}, as("operator"));
			expect(all.events).toMatchObject([{ reason: "Booked", resource: { name: "miles" } }]);
		}, 300_000);
		expect((await events.listEvents({}, as("fan"))).events).toHaveLength(1);
		expect((await events.listEvents({}, as("tenant"))).events).toEqual([]);
		const named = { filter: { resource: idOf(Artist, "miles") } };
		expect((await events.listEvents(named, as("tenant"))).events).toEqual([]);
		await expect(events.listEvents({})).rejects.toMatchObject({ code: Code.Unauthenticated });
		// A policy that names the artist still shows it once it is gone.
		await server.client.delete({ id: idOf(Artist, "miles") });
		expect((await events.listEvents({}, as("fan"))).events).toHaveLength(1);
	});

	it("records who has requested a deletion that waits or is refused", async () => {
		const server = await startServer({ modules: [agency()] });
		const transport = createConnectTransport({ baseUrl: server.address, httpVersion: "2" });
		const client = createClient(ResourceService, transport);
		const resource = artist("miles");
		resource.metadata.finalizers = "estate";
		await client.write({ resource });
		await client.delete({ id: idOf(Artist, "miles") });
		await client.delete({ id: idOf(Namespace, "default") }).catch(() => {});
		const { events } = await eventsOf(server).listEvents({
			filter: { resource: idOf(Artist, "miles") },
		});
		expect(events.find(({ reason }) => reason === "DeletionWaits")?.message).toBe(
			"deletion requested by anyone; it waits for estate",
		);
	});

	it("has its events after a restart", async () => {
		const directory = await mkdtemp(join(tmpdir(), "plinth-events-"));
		onTestFinished(() => rm(directory, { recursive: true }));
		const options = { storage: { kind: "sqlite", directory } as const };
		const first = await startServer({ ...options, modules: [agency()] });
		await first.client.write({ resource: artist("miles") });
		const [before] = await shown(first, 1);
		await first.stop();
		const second = await startServer(options);
		const [after] = await shown(second, 1);
		expect(after).toEqual(before);
	});
});

describeWith("etcd")("EventService, on two servers of one etcd", () => {
	it("tells the same on both", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const storage = { kind: "etcd", endpoints: [etcd.url] } as const;
		const teller = await startServer({ storage, modules: [agency()] });
		const listener = await startServer({ storage });
		const stop = new AbortController();
		const watch = eventsOf(listener).watchEvents({}, { signal: stop.signal });
		await teller.client.write({ resource: artist("miles") });
		for await (const { events } of watch) {
			if (events.some(({ reason }) => reason === "Booked")) {
				break;
			}
		}
		stop.abort();
		expect(await shown(listener, 1)).toEqual(await shown(teller, 1));
	});
});
