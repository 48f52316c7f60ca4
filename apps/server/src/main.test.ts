import { execFile } from "node:child_process";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf, typeOf } from "@plinth/resource";
import { itWith, temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { JukeboxService } from "../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist } from "../testdata/music.ts";
import { musicModuleFile, ServerProcess, stuckModuleFile } from "./server-process.fixture.ts";

const anyPort = ["--listen", "127.0.0.1:0"];
const inMemory = [...anyPort, "--storage", "memory"];
const music = ["--module", musicModuleFile];

async function failure(call: Promise<unknown>): Promise<unknown> {
	const error = await call.catch((reason: unknown) => reason);
	return error instanceof ConnectError ? Code[error.code] : error;
}

describe("plinth-server, started", () => {
	itWith("curl")("prints its address, and a first call that works", async () => {
		const server = new ServerProcess(...inMemory, ...music);
		const address = await server.listening();
		expect(server.stdout).toContain(`Plinth listens on ${address}`);
		expect(server.stdout).toMatch(/modules +music/);
		const line = server.stdout.split("\n").find((each) => each.trim().startsWith("curl "));
		const { stdout } = await promisify(execFile)("bash", ["-c", line ?? ""]);
		expect(JSON.parse(stdout)).toMatchObject({ resources: [{ id: { name: "default" } }] });
	});

	it("lists its flags", async () => {
		const { code, stdout } = await new ServerProcess("--help").ended;
		expect(code).toBe(0);
		expect(stdout).toContain("--listen <host:port>");
	});

	it.each([
		[["--prot", "1"], 2, "unknown flag --prot"],
		[["--memory-limit", "2", "--storage", "memory"], 1, "the state holds 0 bytes and would grow"],
		[[...inMemory, ...music, ...music], 1, `module ${musicModuleFile} is configured twice`],
	])("with %j exits immediately and names the problem", async (args, expected, message) => {
		const { code, stdout, stderr } = await new ServerProcess(...args).ended;
		expect({ code, stdout }).toEqual({ code: expected, stdout: "" });
		expect(stderr).toContain(`plinth-server: ${message}`);
		expect(stderr).not.toContain("    at ");
	});
});

describe("plinth-server, with a full disk behind its output", () => {
	const toFull = { tracer: ["bash", "-c", 'exec "$@" > /dev/full', "bash"] };

	it.each([[["new-token"]], [["--help"]], [["agent", "--help"]]])(
		"says so, and fails: %j",
		async (args) => {
			expect(await new ServerProcess(toFull, ...args).ended).toMatchObject({
				code: 1,
				stderr: expect.stringContaining(
					"plinth-server: can't write to standard output: no space left on device\n",
				),
			});
		},
	);

	it("serves", async () => {
		const server = new ServerProcess(toFull, ...inMemory);
		await server.logs(/the startup message could not be printed/);
		server.kill("SIGTERM");
		expect((await server.ended).code).toBe(0);
	});
});

describe("plinth-server, stopped", () => {
	it.each(["SIGTERM", "SIGINT"] as const)(
		"by %s ends open streams with Unavailable, and exits 0",
		async (signal) => {
			const server = new ServerProcess(...inMemory, ...music);
			const baseUrl = await server.listening();
			const ends = [];
			for (const transport of [
				createConnectTransport({ baseUrl, httpVersion: "1.1" }),
				createGrpcTransport({ baseUrl }),
			]) {
				const client = createClient(ResourceService, transport);
				const events = client.watchList({ type: typeOf(Artist.type) })[Symbol.asyncIterator]();
				await events.next();
				ends.push(failure(events.next()));
			}
			server.kill(signal);
			expect(await Promise.all(ends)).toEqual(["Unavailable", "Unavailable"]);
			expect(await server.ended).toMatchObject({ code: 0, signal: null });
		},
	);

	it("by two signals exits immediately", async () => {
		const server = new ServerProcess(...inMemory, "--module", stuckModuleFile);
		const transport = createGrpcTransport({ baseUrl: await server.listening() });
		// Connect's client may wait for ever for a server that is gone after its GOAWAY.
		const controller = new AbortController();
		const client = createClient(JukeboxService, transport);
		const play = failure(client.play({ song: "so what" }, { signal: controller.signal }));
		await server.logs(/playing/);
		server.kill("SIGTERM");
		await server.logs(/SIGTERM: stopping/);
		server.kill("SIGTERM");
		expect(await server.ended).toMatchObject({ code: 1, signal: null });
		controller.abort();
		await play;
	});
});

describe("plinth-server with its data in a folder", () => {
	it("has after a SIGKILL all that it had acknowledged", async () => {
		const args = [...anyPort, ...music, "--data-dir", join(await temporaryFolder(), "data")];
		const first = new ServerProcess(...args);
		const transport = createGrpcTransport({ baseUrl: await first.listening() });
		const client = createClient(ResourceService, transport);
		const acknowledged = new Map<string, string>();
		const writeUntilKilled = async (writer: number) => {
			for (let n = 0; ; n += 1) {
				const { resource } = await client.write({ resource: artist(`artist-${writer}-${n}`) });
				acknowledged.set(resource?.id?.name ?? "", resource?.version ?? "");
				if (acknowledged.size === 200) {
					first.kill("SIGKILL");
				}
			}
		};
		await Promise.allSettled([1, 2, 3, 4].map(writeUntilKilled));
		expect(await first.ended).toMatchObject({ signal: "SIGKILL" });

		const second = new ServerProcess(...args);
		const again = createClient(
			ResourceService,
			createGrpcTransport({ baseUrl: await second.listening() }),
		);
		const { resources } = await again.list({ type: typeOf(Artist.type), tenancy: {} });
		const found = new Map(resources.map(({ id, version }) => [id?.name ?? "", version]));
		expect(found).toEqual(new Map([...found, ...acknowledged]));
		expect(acknowledged.size).toBeGreaterThanOrEqual(200);
	});

	it("resumes a watch after a stop and a start, with what came since", async () => {
		const args = [...anyPort, ...music, "--data-dir", await temporaryFolder()];
		const first = new ServerProcess(...args);
		const before = createClient(
			ResourceService,
			createGrpcTransport({ baseUrl: await first.listening() }),
		);
		await before.write({ resource: artist("miles") });
		first.kill("SIGTERM");
		expect(await first.ended).toMatchObject({ code: 0 });

		const second = new ServerProcess(...args);
		const after = createClient(
			ResourceService,
			createGrpcTransport({ baseUrl: await second.listening() }),
		);
		const { resource } = await after.read({ id: idOf(Artist, "miles") });
		expect(resource?.id?.name).toBe("miles");
		await after.write({ resource: artist("ornette") });
		const events = after.watchList({
			type: typeOf(Artist.type),
			afterVersion: resource?.version ?? "",
		});
		for await (const { event } of events) {
			expect(event.case === "upsert" && event.value.resource?.id?.name).toBe("ornette");
			break;
		}
	});

	it("has what a backup had once that is restored", async () => {
		const folder = await temporaryFolder();
		const args = [...anyPort, ...music, "--data-dir", join(folder, "data")];
		const copy = join(folder, "copy.sqlite");
		const first = new ServerProcess(...args);
		const client = createClient(
			ResourceService,
			createGrpcTransport({ baseUrl: await first.listening() }),
		);
		await client.write({ resource: artist("miles") });
		const inUse = await new ServerProcess("backup", copy, "--data-dir", join(folder, "data")).ended;
		expect(inUse.code).toBe(1);
		expect(inUse.stderr).toContain("To back up a running server, use plinth backup <file>");
		expect(inUse.stderr).not.toContain("    at ");
		first.kill("SIGTERM");
		await first.ended;
		const backup = await new ServerProcess("backup", copy, "--data-dir", join(folder, "data"))
			.ended;
		expect(backup).toMatchObject({ code: 0 });
		const other = join(folder, "other");
		await mkdir(other);
		const restored = await new ServerProcess("restore", copy, "--data-dir", other).ended;
		expect(restored).toMatchObject({ code: 0, stderr: "" });
		const second = new ServerProcess(...anyPort, ...music, "--data-dir", other);
		const again = createClient(
			ResourceService,
			createGrpcTransport({ baseUrl: await second.listening() }),
		);
		const { resource } = await again.read({ id: idOf(Artist, "miles") });
		expect(resource?.id?.name).toBe("miles");
	});

	it("is the only one there, and on its port", async () => {
		const folder = await temporaryFolder();
		const args = [...anyPort, "--data-dir", folder];
		const address = await new ServerProcess(...args).listening();
		const listen = ["--listen", new URL(address).host];
		const [sameFolder, samePort] = await Promise.all([
			new ServerProcess(...args).ended,
			new ServerProcess("--storage", "memory", ...listen).ended,
		]);
		expect(sameFolder.code).toBe(1);
		expect(sameFolder.stderr).toContain(folder);
		expect(sameFolder.stderr).not.toContain("    at ");
		expect(samePort.code).toBe(1);
		expect(samePort.stderr).toContain("another program listens there");
	});
});
