import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { type Client, createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf, Namespace } from "@plinth/resource";
import { runs } from "@plinth/test-support";
import { expect } from "vitest";
import { JukeboxService } from "../testdata/gen/music/v1/music_pb.ts";
import type { Http2Implementation } from "./listener/http2/http2-server.ts";
import { ServerProcess } from "./server-process.fixture.ts";

/** The implementations of HTTP/2 that loads run with: the default one, and in soaks both. */
export const http2OfLongTests: readonly Http2Implementation[] =
	runs(1) > 1 ? ["plinth", "node"] : ["plinth"];

/** The module with a jukebox that plays the size of the heap, as a value of `--module`. */
export const heapModuleFile = fileURLToPath(
	new URL("../testdata/modules/heap/module.ts", import.meta.url),
);

/** A server in its own process, under load. */
export interface LoadedServer {
	readonly process: ServerProcess;
	readonly address: string;
	readonly port: number;
	readonly client: Client<typeof ResourceService>;
	/** The size of its heap after a collection, in bytes. */
	heap(): Promise<number>;
}

/** Starts a server. `headers` are sent with the calls of its client, and `nodeOptions` are passed to the runtime. */
export async function startLoaded(
	flags: readonly string[] = [],
	headers: Readonly<Record<string, string>> = {},
	nodeOptions: readonly string[] = [],
): Promise<LoadedServer> {
	const process = new ServerProcess(
		{ node: nodeOptions },
		...["--listen", "127.0.0.1:0", "--storage", "memory", "--log-level", "warn"],
		...["--module", heapModuleFile, ...flags],
	);
	const address = await process.listening();
	const transport = createGrpcTransport({ baseUrl: address });
	const jukebox = createClient(JukeboxService, transport);
	return {
		process,
		address,
		port: Number(new URL(address).port),
		client: createClient(ResourceService, transport),
		heap: async () => Number((await jukebox.play({}, { headers: { ...headers } })).song),
	};
}

/** The result of a load. */
export interface Figures {
	readonly heapAtHalfMiB: number;
	readonly heapAtEndMiB: number;
	/** Concurrent reads of another client: their number and duration. */
	readonly reads: number;
	readonly medianMs: number;
	readonly p99Ms: number;
	readonly longestMs: number;
}

/** Options of the concurrent reads. */
export interface LoadOptions {
	/** Sent with each read. */
	readonly headers?: Readonly<Record<string, string>>;
	/** The pause between two of them. */
	readonly readEveryMs?: number;
}

/** At least two: the heap of the first half is what the end is compared with. */
const rounds = Math.max(2, runs(3));

/**
 * Runs a load in rounds while another client reads, and compares the heap at the end with the largest of the
 * first half of the rounds, by whose end the runtime has compiled what the load needs.
 */
export async function underLoad(
	name: string,
	server: LoadedServer,
	round: (index: number) => Promise<void>,
	{ headers = {}, readEveryMs = 20 }: LoadOptions = {},
): Promise<Figures> {
	const done = new AbortController();
	const reader = createClient(ResourceService, createGrpcTransport({ baseUrl: server.address }));
	const tookMs: number[] = [];
	const reading = (async () => {
		while (!done.signal.aborted) {
			const startMs = performance.now();
			const { resource } = await reader.read(
				{ id: idOf(Namespace, "default") },
				{ headers: { ...headers } },
			);
			expect(resource?.id?.name).toBe("default");
			tookMs.push(performance.now() - startMs);
			await new Promise((resolve) => setTimeout(resolve, readEveryMs));
		}
	})();
	let atHalf = 0;
	try {
		for (let index = 0; index < rounds; index += 1) {
			await round(index);
			if (index < rounds / 2) {
				atHalf = Math.max(atHalf, await server.heap());
			}
		}
	} finally {
		done.abort();
	}
	await reading;
	let last = await server.heap();
	// Connections that ended just now still have their buffers for a while. A leak stays.
	for (let attempt = 0; last > 1.1 * atHalf && attempt < 60; attempt += 1) {
		await new Promise((resolve) => setTimeout(resolve, 1_000));
		last = await server.heap();
	}
	tookMs.sort((a, b) => a - b);
	const at = (share: number) => tookMs[Math.floor(share * (tookMs.length - 1))] ?? Number.NaN;
	const mebibytes = (bytes: number) => Math.round((bytes / 1024 ** 2) * 10) / 10;
	const rounded = (ms: number) => Math.round(ms * 10) / 10;
	const figures: Figures = {
		heapAtHalfMiB: mebibytes(atHalf),
		heapAtEndMiB: mebibytes(last),
		reads: tookMs.length,
		medianMs: rounded(at(0.5)),
		p99Ms: rounded(at(0.99)),
		longestMs: rounded(at(1)),
	};
	process.stdout.write(`${name}: ${JSON.stringify(figures)}\n`);
	expect(last).toBeLessThanOrEqual(1.1 * atHalf);
	return figures;
}

/** A connection to the server's port. */
export async function open(port: number): Promise<Socket> {
	const socket = connect(port, "127.0.0.1");
	socket.on("error", () => {});
	await once(socket, "connect");
	return socket;
}

/** A WatchList of a type as a Connect request over HTTP/1.1, in bytes. */
export function watchRequest(type: object): Buffer {
	const message = Buffer.from(JSON.stringify({ type }));
	const envelope = Buffer.alloc(5);
	envelope.writeUInt32BE(message.length, 1);
	const head = `POST /plinth.resource.v1.ResourceService/WatchList HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/connect+json\r\ncontent-length: ${message.length + 5}\r\n\r\n`;
	return Buffer.concat([Buffer.from(head), envelope, message]);
}
