import { EventEmitter } from "node:events";
import { Code, ConnectError } from "@connectrpc/connect";
import { Deadlines, silentLogger, systemRuntime } from "@plinth/runtime";
import { expect, it } from "vitest";
import type { InboundCall } from "../inbound-call.ts";
import { defaultForwardingLimits } from "../limits.ts";
import { ListServers } from "../pages/list-servers.ts";
import { ClusterPosition } from "../positions/cluster-position.ts";
import type { Server } from "../servers/server.ts";
import type { CallEnvironment } from "./call-environment.ts";
import { ForwardedCall } from "./forwarded-call.ts";
import { KeptBytes } from "./kept-bytes.ts";

/** A stream to a server, which a test ends. */
class UpstreamStream extends EventEmitter {
	readonly writable = true;
	rstCode = 0;
	write = () => true;
	end() {}
	close() {}
	resume() {}
	pause() {}
}

/** A server whose connection is that session. */
function serverOf(address: string, session: unknown): Server {
	const health = {
		state: "healthy",
		...{ responded() {}, wasUnavailable() {}, connectionLost() {}, connectionFailed() {} },
	};
	const place = { session: () => session, leave() {} };
	return { address, health, take: () => place } as unknown as Server;
}

it("an agent that stops before a write is sent again says that it may have been executed", () => {
	const stream = new UpstreamStream();
	const lost = serverOf("a", {
		...{ open: () => stream, arrived() {}, closed() {}, hasExcluded: () => false, isReady: true },
		failureOf: () => new ConnectError("the connection was lost", Code.Unavailable),
	});
	const connecting = serverOf("b", new Promise(() => {}));
	// A Write with the version 7.
	const body: (Uint8Array | "end")[] = [Uint8Array.of(0x0a, 3, 0x1a, 1, 0x37), "end"];
	const responses: string[] = [];
	const call = {
		...{ method: "POST", target: "/plinth.resource.v1.ResourceService/Write", authority: "x" },
		clientAddress: "",
		header: (name: string) => (name === "content-type" ? "application/proto" : undefined),
		headers: () => [["content-type", "application/proto"]],
		...{ take: () => body.shift(), wait() {}, respond() {}, end() {}, reset() {}, listen() {} },
		write: (chunk: Uint8Array) => void responses.push(Buffer.from(chunk).toString()),
	} as unknown as InboundCall;
	const { clock, random } = systemRuntime;
	let retries = 0;
	const environment = {
		...{ agent: "agent", credential: () => "", limits: defaultForwardingLimits },
		...{
			memory: new KeptBytes(1_000),
			watchRequests: new KeptBytes(1_000),
			position: new ClusterPosition(),
		},
		...{ lists: new ListServers(10), clock, random, deadlines: new Deadlines(clock) },
		...{ logger: silentLogger, noServer: () => "", watchMoved() {} },
		choose: (tried: ReadonlySet<Server>) => (tried.has(lost) ? connecting : lost),
		retried: () => {
			retries += 1;
		},
	} as unknown as CallEnvironment;
	const method = { isRepeatable: false, isStream: false, write: "Write" } as const;
	const forwarded = new ForwardedCall(environment, call, method, () => {});
	forwarded.start();
	stream.rstCode = 2;
	stream.emit("close");
	expect(retries).toBe(1);
	forwarded.stop(new ConnectError("the agent is stopping", Code.Unavailable));
	const [response = "{}"] = responses;
	expect(JSON.parse(response)).toMatchObject({
		code: "unavailable",
		details: [{ type: "google.rpc.ErrorInfo" }],
	});
});
