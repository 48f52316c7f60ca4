import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { type ID, NamespaceSchema } from "@plinth/proto";
import { finalizersKey, idOf, Namespace, resourceOf, tenancyOf } from "@plinth/resource";
import { type Logger, silentLogger, systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it, onTestFinished } from "vitest";
import { Artist, artist, musicModule } from "../testdata/music.ts";
import { type Module, standInModule, standInType } from "./module/index.ts";
import { createServer, type Server } from "./server.ts";
import { startServer } from "./started-server.fixture.ts";

it("keeps and counts at start what is stored of types that are not registered", async () => {
	const directory = await mkdtemp(join(tmpdir(), "plinth-unregistered-"));
	const warnings: unknown[] = [];
	const started = async (modules: Parameters<typeof createServer>[0]["modules"] = []) => {
		const server = createServer({
			storage: { kind: "sqlite", directory },
			listen: { host: "127.0.0.1", port: 0 },
			modules,
			logger: { ...silentLogger, warn: (fields) => warnings.push(fields) },
		});
		await server.start();
		return server;
	};
	let server: Server | undefined;
	try {
		server = await started([musicModule()]);
		const { resource } = await server.client.write({ resource: artist("miles") });
		await server.stop();
		expect(warnings).toEqual([]);

		server = await started();
		expect(warnings).toEqual([{ type: "music.v1.Artist", count: 1 }]);
		await server.stop();

		server = await started([musicModule()]);
		const id = resource?.id;
		expect((await server.client.read({ ...(id && { id }) })).resource).toEqual(resource);
	} finally {
		await server?.stop();
		await rm(directory, { recursive: true });
	}
});

describe("a namespace with resources of a type that the server does not register", () => {
	const id = idOf(Namespace, "tenant");
	const namespace = resourceOf(Namespace, { id, data: create(NamespaceSchema) });

	async function fill(directory: string, finalizers: string): Promise<void> {
		const server = await start(directory, [musicModule()]);
		await server.client.write({ resource: namespace });
		const resource = artist("miles");
		await server.client.write({
			resource: {
				...resource,
				...(resource.id && { id: inTenant(resource.id) }),
				metadata: { [finalizersKey]: finalizers },
			},
		});
		await server.stop();
	}

	const inTenant = (of: ID): ID => ({ ...of, tenancy: tenancyOf({ namespace: "tenant" }) });

	/** A server over the storage; time passes for it only in `until`. */
	async function start(
		directory: string,
		modules: readonly Module[],
		warn: Logger["warn"] = () => {},
	): Promise<Server> {
		const clock = new FakeClock();
		clocks.set(directory, clock);
		return startServer({
			storage: { kind: "sqlite", directory },
			modules,
			runtime: { ...systemRuntime, clock },
			logger: { ...silentLogger, warn, error: warn },
		});
	}
	const clocks = new Map<string, FakeClock>();

	/** Lets time pass until the condition holds; for ever where it never does. */
	async function until(directory: string, condition: () => Promise<boolean>): Promise<void> {
		while (!(await condition())) {
			clocks.get(directory)?.advance(100);
			await new Promise((resolve) => setImmediate(resolve));
		}
	}

	async function isGone({ client }: Server): Promise<boolean> {
		const { resources } = await client.list({ type: Namespace.type, tenancy: {} });
		return !resources.some((resource) => resource.id?.name === id.name);
	}

	it.each([
		["its module", "", () => musicModule()],
		[
			"a stand-in for its type",
			"music/lost",
			() => standInModule([standInType("music.v1.Artist", "namespace")]),
		],
	])(
		"stays until a server has %s, and the next tenant finds nothing",
		async (_, finalizers, moduleOf) => {
			const directory = await mkdtemp(join(tmpdir(), "plinth-tenancy-"));
			onTestFinished(() => rm(directory, { recursive: true, force: true }));
			await fill(directory, finalizers);

			const without = await start(directory, []);
			await without.client.delete({ id });
			let message = "";
			await until(directory, async () => {
				const { resource } = await without.client.read({ id });
				message = resource?.status["namespace-deletion"]?.conditions[0]?.message ?? "";
				return message !== "";
			});
			expect(message).toMatch(
				/^still there: 1 music\.v1\.Artist\. No module of this server registers music\.v1\.Artist/,
			);
			await expect(without.client.write({ resource: namespace })).rejects.toThrow(
				"only finalizers can be removed",
			);
			await expect(without.client.write({ resource: namespace, createOnly: true })).rejects.toThrow(
				"tenant already exists",
			);
			await without.stop();

			const again = await start(directory, [moduleOf()]);
			await until(directory, () => isGone(again));
			await again.client.write({ resource: namespace });
			await again.stop();

			const next = await start(directory, [musicModule()]);
			const { resources } = await next.client.list({
				type: Artist.type,
				tenancy: inTenant(id).tenancy ?? {},
			});
			expect(resources).toEqual([]);
			await next.stop();
		},
	);

	it("whose stand-in has a message of another name is named in the error", async () => {
		const directory = await mkdtemp(join(tmpdir(), "plinth-tenancy-"));
		onTestFinished(() => rm(directory, { recursive: true, force: true }));
		await fill(directory, "music/lost");
		const standIn = standInType("music.v1.Artist", "namespace", "other.Performer");
		const told: string[] = [];
		const server = await start(directory, [standInModule([standIn])], (fields) => {
			told.push(String(fields.err));
		});
		await server.client.delete({ id });
		await until(directory, async () =>
			told.some((text) => text.includes("expected other.Performer, got music.v1.Artist")),
		);
	});
});
