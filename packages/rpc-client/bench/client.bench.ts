import { fork } from "node:child_process";
import { once } from "node:events";
import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { ComparisonTable, unlessQuick } from "@plinth/bench";
import { createPlinthTransport } from "@plinth/rpc-client";
import { createCancelingClient } from "@plinth/transport";
import { ProbeService } from "../testdata/src/gen/probe_pb.ts";

/*
 * The processor time of a client, per call and per message of a stream, with connect-node's gRPC transport and with
 * that of this package. The server is the same, in another process.
 */

const streamLength = 10_000;

/** Processor time of this process, in microseconds per operation. */
async function microsecondsPer(count: number, run: () => Promise<unknown>): Promise<number> {
	const start = process.cpuUsage();
	await run();
	const { user, system } = process.cpuUsage(start);
	return (user + system) / count;
}

async function callUnary(
	client: Client<typeof ProbeService>,
	callers: number,
	count: number,
	options?: Parameters<typeof client.unary>[1],
): Promise<void> {
	let left = count;
	const caller = async () => {
		while (left > 0) {
			left -= 1;
			await client.unary({ text: "a request", number: 1 }, options);
		}
	};
	await Promise.all(Array.from({ length: callers }, caller));
}

async function readStream(client: Client<typeof ProbeService>): Promise<void> {
	let sum = 0;
	for await (const { number } of client.serverStream({})) {
		sum += number;
	}
	if (sum !== streamLength) {
		throw new Error(`expected ${streamLength} messages, got ${sum}`);
	}
}

const server = fork(new URL("./server.ts", import.meta.url));
const [address]: readonly unknown[] = await once(server, "message");
const port: unknown = Object(address).port;
const baseUrl = `http://127.0.0.1:${port}`;
const sessions = new Http2SessionManager(baseUrl);
const withToken: Interceptor = (next) => (request) => {
	request.header.set("authorization", "Bearer token");
	return next(request);
};
const transport = createPlinthTransport({ baseUrl });
const intercepted = createPlinthTransport({ baseUrl, interceptors: [withToken] });
const library = createClient(
	ProbeService,
	createGrpcTransport({ baseUrl, sessionManager: sessions }),
);
const libraryIntercepted = createClient(
	ProbeService,
	createGrpcTransport({ baseUrl, sessionManager: sessions, interceptors: [withToken] }),
);
const own = createClient(ProbeService, transport);
const ownIntercepted = createClient(ProbeService, intercepted);
const canceling = createCancelingClient(ProbeService, transport);

const table = new ComparisonTable("Processor time of a client", "µs");
const calls = unlessQuick(2_000, 20);
for (const callers of [1, 16, 64]) {
	const round = (client: Client<typeof ProbeService>) => () =>
		microsecondsPer(calls, () => callUnary(client, callers, calls));
	await table.measure(`unary call, ${callers} callers`, {
		"@plinth/rpc-client": round(own),
		"connect-node": round(library),
	});
}
const options = { timeoutMs: 60_000, signal: new AbortController().signal };
const full = (client: Client<typeof ProbeService>) => () =>
	microsecondsPer(calls, () => callUnary(client, 16, calls, options));
await table.measure("unary call, 16 callers, with interceptor, timeout and signal", {
	"@plinth/rpc-client": full(ownIntercepted),
	"connect-node": full(libraryIntercepted),
});
const stream = (client: Client<typeof ProbeService>) => () =>
	microsecondsPer(streamLength, () => readStream(client));
await table.measure("message of a server stream", {
	"@plinth/rpc-client": stream(own),
	"connect-node": stream(library),
});
await table.measure("message of a server stream, with createCancelingClient", {
	"@plinth/rpc-client": stream(canceling),
	"connect-node": stream(library),
});
table.print();
sessions.abort();
transport.close();
intercepted.close();
server.kill();
