import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { describeWith } from "@plinth/test-support";
import { afterEach, beforeEach, expect, it } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import {
	Health,
	HealthCheckResponse_ServingStatus as Status,
} from "../gen/grpc/health/v1/health_pb.ts";
import { musicModuleFile, ServerProcess } from "../server-process.fixture.ts";

let directory: string;

beforeEach(() => {
	directory = mkdtempSync(join(tmpdir(), "plinth-failing-"));
});

afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** What a server process has for its clients. */
interface Started {
	readonly server: ServerProcess;
	readonly address: string;
	readonly resources: Client<typeof ResourceService>;
	readonly health: Client<typeof Health>;
}

/**
 * Starts a server.
 *
 * @param fault what strace injects into system calls on the write-ahead log.
 */
async function start(
	fault?: string,
	stopTimeout = "2s",
	...flags: readonly string[]
): Promise<Started> {
	const log = join(directory, "plinth.sqlite-wal");
	const traced = ["strace", "-D", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-P", log];
	const calls = fault?.split(":", 1)[0] ?? "";
	const server = new ServerProcess(
		{ tracer: fault === undefined ? [] : [...traced, "-e", calls, "-e", `inject=${fault}`] },
		...["--listen", "127.0.0.1:0", "--module", musicModuleFile, "--data-dir", directory],
		...["--limits-stop-timeout", stopTimeout, ...flags],
	);
	const address = await server.listening();
	const transport = createGrpcTransport({ baseUrl: address });
	return {
		server,
		address,
		resources: createClient(ResourceService, transport),
		health: createClient(Health, transport),
	};
}

/** Writes artists until one is refused. Returns the acknowledged names, and the refusal. */
async function writeUntilRefused({ resources }: Started) {
	const acknowledged: string[] = [];
	for (;;) {
		const name = `a${acknowledged.length}`;
		try {
			await resources.write({ resource: artist(name) });
		} catch (failure) {
			return { acknowledged, refusal: ConnectError.from(failure) };
		}
		acknowledged.push(name);
	}
}

async function readyz(address: string): Promise<readonly [number, string]> {
	const response = await fetch(`${address}/readyz`);
	return [response.status, await response.text()];
}

const syncs = "fsync,fdatasync";

describeWith("strace")("a server whose disk fails to sync once", () => {
	it("logs it, and exits with 1 after the stop limit; what was acknowledged is there", async () => {
		const started = await start(`${syncs}:error=EIO:when=30`);
		const { acknowledged, refusal } = await writeUntilRefused(started);
		expect(acknowledged.length).toBeGreaterThan(0);
		expect(refusal.code).not.toBe(Code.ResourceExhausted);
		const { code, stderr } = await started.server.ended;
		expect(code).toBe(1);
		expect(stderr).toContain("the storage failed: no write is accepted");
		expect(stderr).toMatch(/disk I\/O error \(SQLite error \d+\)/);

		const again = await start();
		for (const name of acknowledged) {
			expect((await again.resources.read({ id: idOf(Artist, name) })).resource).toBeDefined();
		}
		await again.resources.write({ resource: artist("later") });
	});

	it("is not ready, and with --on-storage-failure stay serves reads until it is stopped", async () => {
		const started = await start(
			`${syncs}:error=EIO:when=30`,
			...["10ms", "--on-storage-failure", "stay"],
		);
		const { server, address, resources, health } = started;
		expect(await readyz(address)).toEqual([200, "ready\n"]);
		const statuses = health.watch({})[Symbol.asyncIterator]();
		expect((await statuses.next()).value?.status).toBe(Status.SERVING);
		await writeUntilRefused(started);
		await server.logs(/the storage failed/);
		// Many times the stop limit.
		for (let round = 0; round < 100; round++) {
			expect((await resources.read({ id: idOf(Artist, "a0") })).resource?.id?.name).toBe("a0");
		}
		// The next sync would succeed, but what the failed one has lost is not known.
		await expect(resources.write({ resource: artist("later") })).rejects.toThrow();
		expect(await readyz(address)).toEqual([503, expect.stringContaining("storage: ")]);
		expect((await health.check({})).status).toBe(Status.NOT_SERVING);
		expect((await statuses.next()).value?.status).toBe(Status.NOT_SERVING);
		server.kill("SIGTERM");
		expect((await server.ended).signal).toBe(null);
	});

	it("treats a sync that fails for want of room as a failure too", async () => {
		const started = await start(`${syncs}:error=ENOSPC:when=30`);
		const { refusal } = await writeUntilRefused(started);
		expect(refusal.code).not.toBe(Code.ResourceExhausted);
		await started.server.logs(/the storage failed/);
		expect((await started.server.ended).code).toBe(1);
	});
});

describeWith("strace")("a server whose disk is full for a while", () => {
	it("refuses writes, logs it once, stays ready, and accepts writes again when there is space", async () => {
		const started = await start("pwrite64:error=ENOSPC:when=120..130");
		const { server, address, resources } = started;
		const { refusal } = await writeUntilRefused(started);
		expect(refusal.code).toBe(Code.ResourceExhausted);
		expect(refusal.rawMessage).toContain("full");
		await server.logs(/the disk of the storage is full/);
		expect(await readyz(address)).toEqual([200, "ready\n"]);
		for (;;) {
			const failure = await resources.write({ resource: artist("later") }).then(
				() => undefined,
				(error: unknown) => ConnectError.from(error),
			);
			if (failure === undefined) {
				break;
			}
			expect(failure.code).toBe(Code.ResourceExhausted);
		}
		await server.logs(/the disk of the storage has space again/);
		expect(server.stderr.match(/the disk of the storage is full/g)).toHaveLength(1);
		expect((await resources.read({ id: idOf(Artist, "later") })).resource).toBeDefined();
	});
});
