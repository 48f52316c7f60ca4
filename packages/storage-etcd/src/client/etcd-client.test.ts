import { once } from "node:events";
import { createServer as createHttp2Server } from "node:http2";
import { createServer, type Server } from "node:net";
import { setImmediate } from "node:timers/promises";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { systemRuntime } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import { expect, it, onTestFinished } from "vitest";
import { KV } from "../gen/etcdserverpb/rpc_pb.ts";
import { keyText } from "../keys.ts";
import { EtcdClient } from "./etcd-client.ts";
import { rangePages } from "./range-pages.ts";

const signal = new AbortController().signal;
const range = { key: Buffer.of(0), rangeEnd: Buffer.of(255), groupEnd: () => undefined };
const kvs = [{ key: Buffer.from("key") }];

async function portOf(server: Pick<Server, "listen" | "once" | "address" | "close">) {
	server.listen(0, "127.0.0.1");
	await once(server as Server, "listening");
	onTestFinished(() => void server.close());
	const address = server.address();
	return typeof address === "object" ? address?.port : undefined;
}

/** A member that does not respond to reads of more than one key. */
async function slowMember(onSlow: () => void): Promise<string> {
	const adapter = connectNodeAdapter({
		routes: ({ service }) => {
			service(KV, {
				range: ({ limit }) => {
					if (limit === 1n) {
						return { kvs, more: false };
					}
					onSlow();
					return new Promise(() => {});
				},
			});
		},
	});
	return `http://127.0.0.1:${await portOf(createHttp2Server(adapter))}`;
}

/** A member to which connections are neither made nor refused. */
async function unreachableMember(onConnect: () => void): Promise<string> {
	const server = createServer((socket) => {
		socket.on("error", () => {});
		onConnect();
	});
	return `https://127.0.0.1:${await portOf(server)}`;
}

it("reads fewer keys from slow members, although the last one can't be reached", async () => {
	const clock = new FakeClock();
	const waiting: string[] = [];
	const endpoints = [
		await slowMember(() => waiting.push("a")),
		await slowMember(() => waiting.push("b")),
		await unreachableMember(() => waiting.push("c")),
	];
	const client = new EtcdClient({ endpoints, runtime: { ...systemRuntime, clock } });
	onTestFinished(() => client.close());
	const limits: unknown[] = [];
	const spied: Pick<EtcdClient, "range"> = {
		range: (request, signal) => {
			limits.push(request.limit);
			return client.range(request, signal);
		},
	};
	let isRead = false;
	const read = Array.fromAsync(rangePages(spied, range, 1n, signal)).finally(() => {
		isRead = true;
	});
	read.catch(() => {});
	const tried: string[] = [];
	while (!isRead) {
		const member = waiting.shift();
		const pauseMs = clock.nextTimerMs() ?? 0;
		if (member !== undefined) {
			tried.push(member);
			// The time of one attempt.
			clock.advance(1667);
		} else if (pauseMs <= 100) {
			// The pause between attempts.
			clock.advance(pauseMs);
		}
		await setImmediate();
	}
	expect(tried).toEqual(["a", "b", "c"]);
	expect(limits).toEqual([2n, 1n]);
	expect((await read).flat().map(({ key }) => keyText(key))).toEqual(["key"]);
});
