// What a unary call costs a server of this package, and one of node:http2: processor time of processes of their own.
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import http2 from "node:http2";
import { ComparisonTable, numberOption } from "@plinth/bench";

const calls = numberOption("calls", 20_000, 500);

interface Contender {
	readonly process: ChildProcess;
	readonly client: http2.ClientHttp2Session;
}

async function start(name: string): Promise<Contender> {
	const child = fork(new URL("./echo-server.ts", import.meta.url), [name]);
	const [port] = await once(child, "message");
	return { process: child, client: http2.connect(`http://127.0.0.1:${port}`) };
}

async function processorMicroseconds(child: ChildProcess): Promise<number> {
	child.send("");
	const [value] = await once(child, "message");
	return value;
}

function echo(client: http2.ClientHttp2Session, body: Buffer): Promise<void> {
	return new Promise((resolve, reject) => {
		const stream = client.request({
			":method": "POST",
			":path": "/plinth.bench.v1.EchoService/Echo",
			"content-type": "application/grpc",
			"user-agent": "bench",
			te: "trailers",
		});
		stream.resume();
		stream.on("close", resolve);
		stream.on("error", reject);
		stream.end(body);
	});
}

/** Returns processor time of the server, in microseconds a call. */
async function round(contender: Contender, callers: number, body: Buffer): Promise<number> {
	const before = await processorMicroseconds(contender.process);
	await Promise.all(
		Array.from({ length: callers }, async () => {
			for (let call = 0; call < calls / callers; call++) {
				await echo(contender.client, body);
			}
		}),
	);
	return ((await processorMicroseconds(contender.process)) - before) / calls;
}

const own = await start("own");
const node = await start("node:http2");
const table = new ComparisonTable("Echo of a unary call: processor time of the server", "µs");
for (const callers of [64, 1]) {
	for (const bytes of [100, 10_000]) {
		const body = Buffer.alloc(bytes, "x");
		await table.measure(`${callers} concurrent calls of ${bytes} bytes`, {
			"@plinth/http2": () => round(own, callers, body),
			"node:http2": () => round(node, callers, body),
		});
	}
}
table.print();
for (const contender of [own, node]) {
	contender.client.destroy();
	contender.process.kill();
}
