import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Code, createClient } from "@connectrpc/connect";
import { defineController } from "@plinth/controller";
import { HistoryService, ResourceService } from "@plinth/proto";
import { idOf, typeOf } from "@plinth/resource";
import { PolicyAuthorizer } from "@plinth/resource-service";
import { createPlinthTransport } from "@plinth/rpc-client";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { Artist, musicModule } from "../../testdata/music.ts";
import { defineModule } from "../module/index.ts";
import { ModuleError } from "../module/load-module.ts";
import { startServer } from "../started-server.fixture.ts";
import { agency, allReconciled, write } from "./agency.fixture.ts";
import { readiness, startTestAgent } from "./started-agent.fixture.ts";

const artists = { type: typeOf(Artist.type), tenancy: {} };

/** Controllers in an agent with a limit of calls, at a server with one of streams, and a client of the agent. */
async function startLimited({
	calls,
	streamsPerConnection,
}: {
	readonly calls: number;
	readonly streamsPerConnection?: number;
}) {
	const server = await startServer({
		modules: [musicModule()],
		...(streamsPerConnection !== undefined && { limits: { streamsPerConnection } }),
	});
	const { module, reconciled } = agency();
	const forwardingLimits = { calls };
	const agent = await startTestAgent([server.address], { forwardingLimits }, { modules: [module] });
	await readiness(agent.address, /: ready/);
	const transport = createPlinthTransport({ baseUrl: agent.address });
	onTestFinished(() => transport.close());
	return { server, client: createClient(ResourceService, transport), reconciled };
}

describe("controllers in an agent", () => {
	it("reconcile what servers store, and see their own writes", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const { module, rewinds, reconciled } = agency();
		const agent = await startTestAgent([server.address], {}, { modules: [module] });
		await write(server, "miles", "john");
		await allReconciled(server, "miles", "john");
		expect(rewinds).toEqual([]);
		expect(reconciled.length).toBeGreaterThanOrEqual(10);
		const metrics = await (await fetch(`${agent.address}/metrics`)).text();
		expect(metrics).toMatch(/plinth_controller_running\{[^}]*controller="agent"[^}]*\} 1/);
	});

	it("have the rights of their token, which is read again, and are named in the history", async () => {
		const authorizer = new PolicyAuthorizer();
		const operations = ["operator:read", "operator:lease"];
		authorizer.grant("weak", { subject: "weak", rules: [{ operations }] });
		authorizer.grant("strong", { subject: "strong", rules: [{ operations: ["*"] }] });
		const server = await startServer({ authorizer, modules: [musicModule()] });
		const tokenFile = join(await temporaryFolder(), "token");
		await writeFile(tokenFile, "weak\n");
		const { module, reconciled } = agency();
		const agent = await startTestAgent(
			[server.address],
			{ controllersTokenFile: tokenFile },
			{ modules: [module] },
		);
		await write(server, "miles");
		await vi.waitFor(() => expect(reconciled.length).toBeGreaterThan(1), { timeout: 300_000 });
		const { resource } = await server.client.read({ id: idOf(Artist, "miles") });
		expect(resource?.metadata.concerts).toBeUndefined();
		await writeFile(tokenFile, "strong\n");
		await agent.reload();
		await allReconciled(server, "miles");
		const transport = createPlinthTransport({
			baseUrl: server.address,
			headers: { authorization: "Bearer strong" },
		});
		onTestFinished(() => transport.close());
		const { versions } = await createClient(HistoryService, transport).listVersions({
			id: idOf(Artist, "miles"),
		});
		expect(versions[0]?.writtenBy).toBe("strong");
	});

	it("run at one agent, and at the next one when that stops", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const [one, two] = [agency(), agency()];
		const first = await startTestAgent([server.address], {}, { modules: [one.module] });
		await write(server, "miles");
		await allReconciled(server, "miles");
		await startTestAgent([server.address], {}, { modules: [two.module] });
		await write(server, "john");
		await allReconciled(server, "john");
		expect(two.reconciled).toEqual([]);
		await first.stop();
		await write(server, "wayne");
		await allReconciled(server, "wayne");
		expect(two.reconciled).toContain("wayne");
		expect([...one.rewinds, ...two.rewinds]).toEqual([]);
	});

	it("make their calls also while clients have used up the limit of calls", async () => {
		const { server, client, reconciled } = await startLimited({ calls: 1 });
		await client.watchList(artists)[Symbol.asyncIterator]().next();
		await expect(client.list(artists)).rejects.toThrow("the agent forwards at most 1 calls");
		await write(server, "miles");
		await allReconciled(server, "miles");
		expect(reconciled.length).toBeGreaterThanOrEqual(5);
	});

	it("make their calls also while clients have taken all that a server accepts of their connections", async () => {
		// So the agent has one connection for clients.
		const { server, client, reconciled } = await startLimited({
			calls: 40,
			streamsPerConnection: 41,
		});
		let ended = 0;
		for (let count = 0; count < 40; count += 1) {
			const begun = Promise.withResolvers<void>();
			const read = async () => {
				for await (const _ of client.watchList(artists)) {
					begun.resolve();
				}
			};
			read().catch(() => {
				ended += 1;
			});
			await begun.promise;
		}
		await write(server, "miles");
		await allReconciled(server, "miles");
		expect(reconciled.length).toBeGreaterThanOrEqual(5);
		expect(ended).toBe(0);
	});

	it("stop at the same time as the calls of clients, which learn of it at once", async () => {
		const server = await startServer({ modules: [musicModule()] });
		const [begun, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
		const controller = defineController({
			name: "slow",
			manages: Artist,
			async reconcile({ client, cache }, { id }) {
				const resource = cache.get(Artist, id)?.resource;
				begun.resolve();
				await released.promise;
				if (resource !== undefined && resource.metadata.stopped === undefined) {
					const metadata = { ...resource.metadata, stopped: "yes" };
					await client.write({ resource: { ...resource, metadata } });
				}
			},
		});
		const module = defineModule({ name: "slow", types: [Artist], controllers: [controller] });
		const agent = await startTestAgent([server.address], {}, { modules: [module] });
		await readiness(agent.address, /: ready/);
		const transport = createPlinthTransport({ baseUrl: agent.address });
		onTestFinished(() => transport.close());
		const client = createClient(ResourceService, transport);
		const watch = client.watchList(artists)[Symbol.asyncIterator]();
		await watch.next();
		await write(server, "miles");
		await begun.promise;
		const stopped = agent.stop();
		await expect(
			(async () => {
				while ((await watch.next()).done !== true) {}
			})(),
		).rejects.toThrow("the agent is stopping: open the stream again");
		await expect(client.list(artists)).rejects.toMatchObject({ code: Code.Unavailable });
		// What controllers have begun succeeds.
		released.resolve();
		await stopped;
		const { resource } = await server.client.read({ id: idOf(Artist, "miles") });
		expect(resource?.metadata.stopped).toBe("yes");
	});

	it("are refused if an agent could not run them", async () => {
		const start = (...modules: ReturnType<typeof defineModule>[]) =>
			startTestAgent(["http://127.0.0.1:1"], {}, { modules });
		await expect(start(musicModule())).rejects.toThrow("module music has no controllers");
		const controllers = agency().module.controllers;
		const unnamed = defineModule({ name: "a b", types: [Artist], controllers });
		await expect(start(unnamed)).rejects.toThrow(ModuleError);
		const typeless = defineModule({ name: "typeless", controllers });
		await expect(start(agency().module, typeless)).rejects.toThrow(
			"controller agent: module agency has another controller of this name",
		);
		await expect(start(typeless)).rejects.toThrow("which is not registered");
		await expect(
			startTestAgent(
				["http://127.0.0.1:1"],
				{ controllersTokenFile: "/nowhere/token" },
				{ modules: [agency().module] },
			),
		).rejects.toThrow("/nowhere/token can't be read");
	});
});
