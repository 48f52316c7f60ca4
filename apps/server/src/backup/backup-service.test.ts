import { createHash } from "node:crypto";
import { readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Code, ConnectError, createClient, createHandlerContext } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { BackupService } from "@plinth/proto";
import type { BackupResponse } from "@plinth/proto/gen/plinth/backup/v1/backup_service_pb.js";
import { insecureAllowAll, tokenHash } from "@plinth/resource-service";
import { silentLogger } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { createSqliteBackend, restoreFile } from "@plinth/storage-sqlite";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it } from "vitest";
import { artist, musicModule } from "../../testdata/music.ts";
import { filesOf } from "../certificates.fixture.ts";
import type { ServerOptions } from "../server-options.ts";
import { startServer } from "../started-server.fixture.ts";
import { createBackupService } from "./backup-service.ts";
import type { StorageCopy } from "./storage-copies.ts";

/** A server with its data in a folder, some artists in it, and a client of its backups. */
async function startStoring(artists: number, options: Partial<ServerOptions> = {}) {
	const directory = await temporaryFolder();
	const server = await startServer({
		modules: [musicModule()],
		storage: { kind: "sqlite", directory },
		...options,
	});
	const write = (from: number, to: number) =>
		Promise.all(
			Array.from({ length: to - from }, (_, index) =>
				server.client.write({ resource: artist(`a${from + index}`, "jazz ".repeat(100)) }),
			),
		);
	await write(0, artists);
	const client = createClient(BackupService, createGrpcTransport({ baseUrl: server.address }));
	return { server, directory, client, write };
}

/** What a stream brings: the cases of its parts, each once in a row, and the file. */
async function received(stream: AsyncIterable<BackupResponse>) {
	const cases: string[] = [];
	const chunks: Uint8Array[] = [];
	let taken: { version: string; resources: bigint; sizeBytes: bigint } | undefined;
	let sha256: Uint8Array | undefined;
	for await (const { part } of stream) {
		if (part.case !== undefined && cases.at(-1) !== part.case) {
			cases.push(part.case);
		}
		if (part.case === "taken") {
			taken = part.value;
		} else if (part.case === "chunk") {
			chunks.push(part.value);
		} else if (part.case === "checksum") {
			({ sha256 } = part.value);
		}
	}
	return { cases, taken, sha256, file: Buffer.concat(chunks), chunks };
}

async function codeOf(call: Promise<unknown>): Promise<string> {
	return Code[ConnectError.from(await call.catch((failure: unknown) => failure)).code];
}

/** How many resources a backup has, once it is restored. */
async function restoredFrom(file: Uint8Array) {
	const folder = await temporaryFolder();
	const [from, path] = [join(folder, "copy"), join(folder, "storage")];
	await writeFile(from, file);
	await restoreFile({ path, from });
	const backend = await createSqliteBackend({ path });
	const counts = await backend.countByType();
	await backend.close();
	return counts.get("music.Artist") ?? counts.get("music.v1.Artist");
}

describe("a backup of a server that runs", () => {
	it("is sent as a file with its checksum, which can be restored, while writes go on", async () => {
		const { client, write, directory } = await startStoring(2_000);
		const writing = write(2_000, 3_000);
		const { cases, taken, sha256, file, chunks } = await received(client.backup({}));
		await writing;
		expect(cases).toEqual(["progress", "taken", "chunk", "checksum"]);
		expect(taken?.sizeBytes).toBe(BigInt(file.byteLength));
		expect(createHash("sha256").update(file).digest()).toEqual(Buffer.from(sha256 ?? []));
		expect(Math.max(...chunks.map(({ byteLength }) => byteLength))).toBeLessThanOrEqual(131_072);
		expect(await restoredFrom(file)).toBeGreaterThanOrEqual(2_000);
		expect(await readdir(directory)).not.toContain("plinth.backups");
	});

	it("is taken one at a time, and another can be taken once a client has gone away", async () => {
		const { client } = await startStoring(3_000);
		const leaving = new AbortController();
		const first = client.backup({}, { signal: leaving.signal })[Symbol.asyncIterator]();
		await first.next();
		expect(await codeOf(received(client.backup({})))).toBe("ResourceExhausted");
		leaving.abort();
		await first.next().catch(() => {});
		// The server learns of it when it does.
		await expect
			.poll(() => received(client.backup({})).then(({ cases }) => cases.at(-1), String))
			.toBe("checksum");
	});

	it("ends with Unavailable when the server stops, and leaves nothing", async () => {
		const { server, client, directory } = await startStoring(3_000);
		const parts = client.backup({})[Symbol.asyncIterator]();
		await parts.next();
		const stopped = server.stop();
		const readOn = async () => {
			while (!(await parts.next()).done) {
				// Until it is told to stop.
			}
		};
		expect(await codeOf(readOn())).toBe("Unavailable");
		await stopped;
		expect(await readdir(directory)).not.toContain("plinth.backups");
	});

	it("is refused for a storage in memory: the error says what to do", async () => {
		const server = await startServer();
		const client = createClient(
			BackupService,
			createConnectTransport({ baseUrl: server.address, httpVersion: "1.1" }),
		);
		await expect(received(client.backup({}))).rejects.toMatchObject({
			code: Code.FailedPrecondition,
			rawMessage: expect.stringContaining("--storage sqlite"),
		});
	});

	it("requires its own right, and leaves an audit line", async () => {
		const policies = {
			reader: '[{ operations: ["operator:read", "operator:write"] }]',
			partly: '[{ operations: ["*"], partition: default }, { operations: ["*"], namePrefix: a }]',
			backups: '[{ operations: ["operator:backup"], type: internal.v1.Backup }]',
		};
		const names = Object.keys(policies);
		const { access } = filesOf({
			access: [
				"policies:",
				...Object.entries(policies).map(([name, rules]) => `  ${name}: ${rules}`),
				"tokens:",
				...names.map(
					(name) => `  - { subject: ${name}, sha256: ${tokenHash(name)}, policies: [${name}] }`,
				),
			].join("\n"),
		});
		const audited: unknown[] = [];
		const { client } = await startStoring(10, {
			access: { file: access },
			logger: {
				...silentLogger,
				info: (fields) => "audit" in fields && audited.push(fields.audit),
			},
		});
		const as = (token: string) =>
			codeOf(
				received(client.backup({}, { headers: { authorization: `Bearer ${token}` } })).then(
					() => new ConnectError("it was sent", Code.AlreadyExists),
				),
			);
		expect(await as("nobody")).toBe("Unauthenticated");
		expect(await as("reader")).toBe("PermissionDenied");
		expect(await as("partly")).toBe("PermissionDenied");
		const sent = received(client.backup({}, { headers: { authorization: "Bearer backups" } }));
		expect((await sent).cases.at(-1)).toBe("checksum");
		const method = "plinth.backup.v1.BackupService/Backup";
		expect(audited).toEqual([
			{ subject: "reader", method, result: "permission_denied" },
			{ subject: "partly", method, result: "permission_denied" },
			{ subject: "backups", method, result: "ok" },
		]);
	});
});

describe("the stream of a backup", () => {
	/** The service over a copy of endless chunks, and what has come of it. */
	function served() {
		const clock = new FakeClock();
		const seen = { read: 0, released: false };
		const released = Promise.withResolvers<void>();
		const copy: StorageCopy = {
			report: { version: "7", resources: 1, identity: { uid: "u", incarnation: "i", restores: 0 } },
			sizeBytes: 2 ** 40,
			async *chunks() {
				for (;;) {
					seen.read += 1;
					yield new Uint8Array(10);
				}
			},
			async [Symbol.asyncDispose]() {
				seen.released = true;
				released.resolve();
			},
		};
		const service = createBackupService({
			copies: { kind: "taken-here", take: async () => copy },
			authorizer: insecureAllowAll,
			clock,
			logger: silentLogger,
		});
		const call = createHandlerContext({
			service: BackupService,
			method: BackupService.method.backup,
			protocolName: "grpc",
			requestMethod: "POST",
			url: "http://in-memory",
		});
		const stream = service.backup({ $typeName: "plinth.backup.v1.BackupRequest" }, call);
		const parts = stream[Symbol.asyncIterator]();
		return { clock, seen, call, parts, released: released.promise };
	}

	it("reads no more of the file than the client reads", async () => {
		const { parts, seen } = served();
		for (let taken = 0; taken < 5; taken += 1) {
			await parts.next();
		}
		expect(seen).toEqual({ read: 4, released: false });
	});

	it("deletes the file if the client reads nothing for a minute", async () => {
		const { parts, seen, clock, released } = served();
		await parts.next();
		await parts.next();
		await clock.advance(59_000);
		await parts.next();
		await clock.advance(59_000);
		expect(seen.released).toBe(false);
		await clock.advance(1_001);
		await released;
		await expect(parts.next()).rejects.toMatchObject({ code: Code.DeadlineExceeded });
	});

	it("deletes the file if the call ends, even though nobody continues to read", async () => {
		const { parts, call, released } = served();
		await parts.next();
		call.abort();
		await released;
	});
});
