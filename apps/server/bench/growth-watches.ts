/*
 * What watches cost others, as they become more. The watchers are in a process of their own.
 *
 * First, the processor time that a write takes in the server because of watches of other names. Then, the latency of
 * writes that nobody watches, while 20 events a second are delivered to all watchers (`--events=20`), as a multiple of
 * their latency without events. With `--against=<checkout>`, the server is that of another checkout.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { format, numberOption, printTable, quantile, type Row, textOption } from "@plinth/bench";
import { ResourceService } from "@plinth/proto";
import { artist } from "../testdata/music.ts";
import { headers } from "./harness/content.ts";
import { type MeasuredServer, startMeasured } from "./harness/measured-process.ts";
import { plinthServer } from "./harness/plinth-server.ts";
import { WatcherGroup } from "./watcher-group.ts";

const contentType = "application/grpc";
const smallest = numberOption("watchers", 10, 2);
const seconds = numberOption("seconds", 10, 1);
const eventsPerSecond = numberOption("events", 20, 20);
const rounds = 5;
const writes = numberOption("writes", 5_000, 100);

const url = textOption("watch");
if (url === undefined) {
	await measure();
	process.exit(0);
} else {
	const count = numberOption("count", 1, 1);
	const namePrefix = textOption("prefix") ?? "";
	await WatcherGroup.open(url, { count, contentType, headers, namePrefix });
	process.send?.("open");
}

async function measure(): Promise<void> {
	const here = fileURLToPath(new URL("..", import.meta.url));
	const against = textOption("against");
	const app = against === undefined ? here : resolve(against, "apps/server");
	const folder = mkdtempSync(join(tmpdir(), "plinth-bench-"));
	const others: Row[] = [];
	const fanOut: Row[] = [];
	try {
		for (const count of [smallest, 10 * smallest, 100 * smallest]) {
			const server = await startMeasured(plinthServer(app, folder), join(folder, "server.log"));
			// Compiles what is measured.
			await costOfWrites(server);
			await latencies(server, 0, seconds / 2);
			const alone = await costOfWrites(server);
			const unconcerned = await watchers(server, count, "other");
			const µs = (await costOfWrites(server)) - alone;
			unconcerned.kill();
			others.push({
				watchers: count,
				"µs per write": format(alone),
				"more with watchers": format(µs),
				"ns per watcher": format((µs * 1_000) / count),
			});
			const concerned = await watchers(server, count, "event");
			const idle: number[] = [];
			const during: number[] = [];
			let fanOutMicroseconds = 0;
			// In turns, so that whatever else the machine does affects both.
			for (let round = 0; round < rounds; round++) {
				idle.push(...(await latencies(server, 0, seconds / rounds)));
				const before = server.cpuMicroseconds();
				during.push(...(await latencies(server, eventsPerSecond, seconds / rounds)));
				fanOutMicroseconds += server.cpuMicroseconds() - before;
			}
			const share = fanOutMicroseconds / (seconds * 1e6);
			concerned.kill();
			const at = (of: readonly number[], share: number) => format(quantile(of, share));
			fanOut.push({
				watchers: count,
				"idle p50 ms": at(idle, 0.5),
				"idle p99 ms": at(idle, 0.99),
				"p50 ms": at(during, 0.5),
				"p99 ms": at(during, 0.99),
				"p99 ÷ idle": format(quantile(during, 0.99) / quantile(idle, 0.99)),
				"server's processor": `${Math.round(share * 100)} %`,
			});
			await server.stop();
		}
	} finally {
		rmSync(folder, { recursive: true });
	}
	printTable("Writes with watches of other names, in processor time of the server", others);
	printTable(
		`Writes while ${eventsPerSecond} events a second are delivered to all watchers`,
		fanOut,
	);
}

/** Watchers of a prefix in a process of their own. */
async function watchers({ address }: MeasuredServer, count: number, prefix: string) {
	const child = fork(
		fileURLToPath(import.meta.url),
		[`--watch=${address}`, `--count=${count}`, `--prefix=${prefix}`],
		{ stdio: "inherit" },
	);
	await once(child, "message");
	return child;
}

function clientOf({ address }: MeasuredServer) {
	return createClient(ResourceService, createGrpcTransport({ baseUrl: address }));
}

/** Microseconds of a write. */
async function costOfWrites(server: MeasuredServer): Promise<number> {
	const client = clientOf(server);
	const start = server.cpuMicroseconds();
	for (let write = 0; write < writes; write++) {
		await client.write({ resource: artist(`some${write % 100}`) }, { headers });
	}
	return (server.cpuMicroseconds() - start) / writes;
}

/** The latencies of writes that nobody watches, in milliseconds, while others are watched. */
async function latencies(
	server: MeasuredServer,
	events: number,
	forSeconds: number,
): Promise<readonly number[]> {
	const client = clientOf(server);
	const other = clientOf(server);
	const result: number[] = [];
	let written = 0;
	const failed = Promise.withResolvers<never>();
	const timer =
		events === 0
			? undefined
			: setInterval(() => {
					written += 1;
					other
						.write({ resource: artist(`event${written % 100}`) }, { headers })
						.catch(failed.reject);
				}, 1_000 / events);
	const endMs = performance.now() + forSeconds * 1_000;
	while (performance.now() < endMs) {
		const startMs = performance.now();
		const write = client.write({ resource: artist(`some${result.length % 100}`) }, { headers });
		await Promise.race([write, failed.promise]);
		result.push(performance.now() - startMs);
		await new Promise((resolve) => setTimeout(resolve, 2));
	}
	clearInterval(timer);
	return result;
}
