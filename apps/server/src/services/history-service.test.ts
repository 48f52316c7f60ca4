import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { defineController } from "@plinth/controller";
import { HistoryService, ResourceService } from "@plinth/proto";
import { Change } from "@plinth/proto/gen/plinth/history/v1/history_service_pb.js";
import { idOf } from "@plinth/resource";
import { PolicyAuthorizer } from "@plinth/resource-service";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { defineModule } from "../module/index.ts";
import type { Server } from "../server.ts";
import { startServer } from "../started-server.fixture.ts";

const id = idOf(Artist, "miles");

function clientsOf(server: Server) {
	const transport = createConnectTransport({ baseUrl: server.address, httpVersion: "2" });
	return {
		resources: createClient(ResourceService, transport),
		histories: createClient(HistoryService, transport),
	};
}

/** Represents artists, and releases those that are deleted. */
const agent = defineController({
	name: "agent",
	manages: Artist,
	reconcile: async (context, { id: named }) => {
		const found = context.cache.get(Artist, named);
		if (found?.resource.metadata.deletionTimestamp !== undefined) {
			const { finalizers, ...metadata } = found.resource.metadata;
			await context.client.write({
				resource: { ...found.resource, metadata: { ...metadata, finalizers: "" } },
			});
		}
	},
});

describe("HistoryService", () => {
	it("names each caller, each controller, and the server itself", async () => {
		const authorizer = new PolicyAuthorizer();
		for (const subject of ["ann", "bob"]) {
			authorizer.grant(subject, { subject, rules: [{ operations: ["*"], type: "*" }] });
		}
		const modules = [defineModule({ name: "agency", types: [Artist], controllers: [agent] })];
		const server = await startServer({ authorizer, modules });
		const { resources, histories } = clientsOf(server);
		const as = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });
		await server.client.write({ resource: artist("miles") });
		const resource = artist("miles");
		resource.metadata.finalizers = "estate";
		await resources.write({ resource }, as("ann"));
		await resources.delete({ id }, as("bob"));
		await vi.waitFor(async () => {
			const { versions } = await histories.listVersions({ id }, as("ann"));
			expect(versions.map(({ change, writtenBy }) => [change, writtenBy])).toEqual([
				[Change.DELETED, "agent"],
				[Change.UPDATED, "bob"],
				[Change.UPDATED, "ann"],
				[Change.CREATED, "deployment"],
			]);
		}, 300_000);
	});

	it("names a controller whose name no header can have as it is", async () => {
		const name = "агент: 100 % größer\n\u001b[2J";
		const modules = [
			defineModule({ name: "agency", types: [Artist], controllers: [{ ...agent, name }] }),
		];
		const server = await startServer({ modules });
		const { histories } = clientsOf(server);
		const resource = artist("miles");
		resource.metadata.finalizers = "estate";
		await server.client.write({ resource });
		await server.client.delete({ id });
		await vi.waitFor(async () => {
			const { versions } = await histories.listVersions({ id });
			expect(versions[0]).toMatchObject({ change: Change.DELETED, writtenBy: name });
		}, 300_000);
	});

	it("is complete since the restart of a server", async () => {
		const directory = await mkdtemp(join(tmpdir(), "plinth-history-"));
		onTestFinished(() => rm(directory, { recursive: true }));
		const options = { storage: { kind: "sqlite", directory } as const };
		const modules = [defineModule({ name: "music", types: [Artist] })];
		const first = await startServer({ ...options, modules });
		await first.client.write({ resource: artist("miles") });
		const { resource: last } = await first.client.write({ resource: artist("miles") });
		const before = await clientsOf(first).histories.listVersions({ id });
		expect(before).toMatchObject({ includesCreation: true });
		expect(before.versions).toHaveLength(2);
		await first.stop();
		const second = await startServer({ ...options, modules });
		const { histories } = clientsOf(second);
		const restarted = await histories.listVersions({ id });
		expect(restarted).toMatchObject({ includesCreation: false, hasMore: false });
		expect(restarted.versions).toMatchObject([
			{ change: Change.UNSPECIFIED, version: last?.version, writtenBy: "" },
		]);
		// The clock of its generation, which is set shortly before it is stored.
		const [known] = restarted.versions;
		expect(known?.writtenAt).toBeDefined();
		expect(known?.resource?.generation).toBe(last?.generation);
		expect(Number(restarted.completeSinceVersion)).toBeGreaterThanOrEqual(Number(last?.version));
		await second.client.write({ resource: artist("miles") });
		const { versions } = await histories.listVersions({ id });
		expect(versions.map(({ change, writtenBy }) => [change, writtenBy])).toEqual([
			[Change.UPDATED, "deployment"],
			[Change.UNSPECIFIED, ""],
		]);
	});
});

describeWith("etcd")("HistoryService, on two servers of one etcd", () => {
	it("knows the versions of both, and by whom those of its own are", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const storage = { kind: "etcd", endpoints: [etcd.url] } as const;
		const modules = [defineModule({ name: "music", types: [Artist] })];
		const one = await startServer({ storage, modules });
		const other = await startServer({ storage, modules });
		await clientsOf(one).resources.write({ resource: artist("miles") });
		await clientsOf(other).resources.write({ resource: artist("miles") });
		const strong = { headers: { "x-plinth-consistency-mode": "consistent" } };
		const writers = async (server: Server) => {
			const { versions } = await clientsOf(server).histories.listVersions({ id }, strong);
			return versions.map(({ change, writtenBy }) => [change, writtenBy]);
		};
		expect(await writers(one)).toEqual([
			[Change.UPDATED, ""],
			[Change.CREATED, "anyone"],
		]);
		expect(await writers(other)).toEqual([
			[Change.UPDATED, "anyone"],
			[Change.CREATED, ""],
		]);
	});
});
