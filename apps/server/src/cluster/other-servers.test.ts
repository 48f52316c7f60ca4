import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer as createHttp2Server, type Http2ServerRequest } from "node:http2";
import { type AddressInfo, createServer as createTcpServer, type Server } from "node:net";
import {
	Code,
	ConnectError,
	type ConnectRouter,
	createClient,
	createHandlerContext,
	type HandlerContext,
} from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { ControllerService } from "@plinth/proto";
import { ClusterService } from "@plinth/proto/gen/plinth/cluster/v1/cluster_service_pb.js";
import { silentLogger, systemClock } from "@plinth/runtime";
import { type ServerRecord, StorageUnavailable } from "@plinth/storage";
import { describe, expect, it, onTestFinished } from "vitest";
import { startServer } from "../started-server.fixture.ts";
import { createClusterService } from "./cluster-service.ts";
import { OtherServers } from "./other-servers.ts";
import { openSealedToken, sealedTokenHeader } from "./sealed-token.ts";

/** A server as it records itself. */
function recordOf(name: string, address: string): ServerRecord {
	return {
		...{ id: randomUUID(), name, address },
		...{ startedAtMs: 0, version: "1.0.0", secret: randomUUID() },
	};
}

async function addressOf(server: Server): Promise<string> {
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => void server.close());
	return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server of HTTP/2 with some services, and the tokens that it has received. */
async function startPeer(routes: (router: ConnectRouter) => void) {
	const tokens: (string | undefined)[] = [];
	const adapter = connectNodeAdapter({ routes });
	const server = createHttp2Server((request, response) => {
		tokens.push(tokenIn(request));
		adapter(request, response);
	});
	return { address: await addressOf(server), tokens };
}

/** What a request has of a token. */
const tokenIn = ({ headers }: Http2ServerRequest) =>
	headers.authorization ?? headers[sealedTokenHeader]?.toString();

/** A token that only its receiver can read. */
const sealed = expect.stringMatching(/^[\w-]{50,}$/);

/** The services of a server that has written a record, and reports by `report`. */
function servicesOf(own: () => ServerRecord, report: () => object = () => ({})) {
	return (router: ConnectRouter) => {
		router.service(ClusterService, createClusterService(own));
		router.service(ControllerService, { listControllers: report });
	};
}

function callWith(options: { readonly timeoutMs?: number } = {}): HandlerContext {
	return createHandlerContext({
		service: ControllerService,
		method: ControllerService.method.listControllers,
		...{ protocolName: "connect", requestMethod: "POST", url: "http://localhost" },
		requestHeader: { authorization: "Bearer of-the-caller", cookie: "private" },
		...options,
	});
}

/** Asks servers for the names of their controllers. */
async function ask(list: () => Promise<readonly ServerRecord[]>, call = callWith()) {
	const others = new OtherServers({
		...{ directory: { list }, clock: systemClock, logger: silentLogger, tls: () => undefined },
		callerOf: ({ requestHeader }) => requestHeader.get("authorization") ?? "",
	});
	onTestFinished(() => others.close());
	const once = () =>
		others.ask("own", call, async (transport, options) => {
			const client = createClient(ControllerService, transport);
			const { controllers } = await client.listControllers({}, options);
			return controllers.map(({ name }) => name);
		});
	return { once, ...(await reportsOf(once)) };
}

async function reportsOf(once: () => ReturnType<OtherServers["ask"]>) {
	const reports = await once();
	return {
		names: reports.map(({ server }) => server?.name),
		missing: reports.map(({ missing }) => missing),
		responses: reports.map(({ response }) => response),
	};
}

describe("the other servers of a cluster", () => {
	it("are asked with the caller's token, and this server is not", async () => {
		const record: { own: ServerRecord } = { own: recordOf("peer", "") };
		const report = () => ({ controllers: [{ name: "singers" }] });
		const { address, tokens } = await startPeer(servicesOf(() => record.own, report));
		record.own = { ...record.own, address };
		const own = { ...recordOf("this", "http://127.0.0.1:1"), id: "own" };
		const { names, missing, responses } = await ask(async () => [own, record.own]);
		expect(names).toEqual(["peer"]);
		expect(missing).toEqual([undefined]);
		expect(responses).toEqual([["singers"]]);
		expect(tokens).toEqual([undefined, sealed]);
	});

	it("prove who they are for each question, also on an open connection", async () => {
		const record: { own: ServerRecord } = { own: recordOf("peer", "") };
		const { address, tokens } = await startPeer(servicesOf(() => record.own));
		const listed = { ...record.own, address };
		const { missing, once } = await ask(async () => [listed]);
		expect(missing).toEqual([undefined]);
		record.own = recordOf("its successor", address);
		expect((await reportsOf(once)).missing).toEqual([
			"is not the server that responds at its address",
		]);
		expect(tokens).toEqual([undefined, sealed, undefined]);
	});

	it("get the token on the connection on which they have proven who they are, or not at all", async () => {
		const record: { own: ServerRecord } = { own: recordOf("peer", "") };
		const peer = connectNodeAdapter({ routes: servicesOf(() => record.own) });
		const tokens: (string | undefined)[] = [];
		let first: unknown;
		const server = createHttp2Server((request, response) => {
			const { session } = request.stream;
			first ??= session;
			if (session === first) {
				// The server stops after this call: another one has its address next.
				session?.goaway(0, 2 ** 31 - 1);
			}
			tokens.push(tokenIn(request));
			peer(request, response);
		});
		record.own = { ...record.own, address: await addressOf(server) };
		const { missing, once } = await ask(async () => [record.own]);
		expect(missing).toEqual(["can't be reached"]);
		expect(tokens).toEqual([undefined]);
		expect((await reportsOf(once)).missing).toEqual([undefined]);
	});

	it("are asked for a few calls of one caller at once, so that many of them cost little", async () => {
		let open = 0;
		let most = 0;
		const { address } = await startPeer((router) => {
			router.service(ClusterService, {
				identify: async (_, { signal }) => {
					open += 1;
					most = Math.max(most, open);
					await once(signal, "abort");
					open -= 1;
					return {};
				},
			});
		});
		const { once: again } = await ask(async () => [recordOf("hanging", address)]);
		const all = await Promise.all(Array.from({ length: 50 }, () => reportsOf(again)));
		// One more may be ending.
		expect(most).toBeLessThanOrEqual(9);
		expect(new Set(all.flatMap((each) => each.missing))).toEqual(
			new Set(["did not respond in time", "was not asked: you make too many calls at once"]),
		);
	});

	it("get a token that a process which passes on their proof can't read", async () => {
		const record = recordOf("peer", "");
		const { address, tokens } = await startPeer(servicesOf(() => record));
		const { missing } = await ask(async () => [{ ...record, address }]);
		expect(missing).toEqual([undefined]);
		expect(tokens).toEqual([undefined, sealed]);
		const received = (secret: string) => {
			const requestHeader = new Headers({ [sealedTokenHeader]: tokens[1] ?? "" });
			openSealedToken({ service: ControllerService, requestHeader }, secret);
			return requestHeader.get("authorization");
		};
		expect(received(record.secret)).toBe("Bearer of-the-caller");
		expect(() => received("a guess")).toThrow("was not sealed for this server");
	});

	it("are missing if a proof is too long", async () => {
		const { address, tokens } = await startPeer((router) => {
			router.service(ClusterService, { identify: () => ({ proof: new Uint8Array(10_000) }) });
		});
		const { missing } = await ask(async () => [recordOf("peer", address)]);
		expect(missing).toEqual(["refused the call: ResourceExhausted"]);
		expect(tokens).toEqual([undefined]);
	});

	it("are missing if another server responds at their address, which gets no token", async () => {
		const another = await startServer();
		const unproven = await startPeer((router) => {
			router.service(ClusterService, { identify: () => ({ proof: new Uint8Array(32) }) });
			router.service(ControllerService, { listControllers: () => ({}) });
		});
		const older = await startPeer((router) => {
			router.service(ControllerService, { listControllers: () => ({}) });
		});
		const addresses = [another.address, unproven.address, older.address];
		const records = addresses.map((address, at) => recordOf(`peer-${at}`, address));
		const { missing } = await ask(async () => records);
		const reason = "is not the server that responds at its address";
		expect(missing).toEqual([reason, reason, reason]);
		expect([...unproven.tokens, ...older.tokens]).toEqual([undefined, undefined]);
	});

	it("are missing if they hang, can't be reached, or refuse the caller", async () => {
		const hanging = createTcpServer();
		const sockets = new Set<{ destroy(): void }>();
		hanging.on("connection", (socket) => sockets.add(socket));
		onTestFinished(() => {
			for (const socket of sockets) {
				socket.destroy();
			}
		});
		const gone = createTcpServer();
		const goneAddress = await addressOf(gone);
		gone.close();
		const record: { own: ServerRecord } = { own: recordOf("refusing", "") };
		const refuse = () => {
			throw new ConnectError("a secret reason", Code.PermissionDenied);
		};
		const { address } = await startPeer(servicesOf(() => record.own, refuse));
		record.own = { ...record.own, address };
		const records = [
			recordOf("hanging", await addressOf(hanging)),
			recordOf("gone", goneAddress),
			recordOf("nonsense", "no address"),
			record.own,
		];
		const expected = [
			"did not respond in time",
			"can't be reached",
			"can't be reached",
			"refused the call: PermissionDenied",
		];
		expect((await ask(async () => records)).missing).toEqual(expected);
		// Of a caller with little time, too, who gets a response.
		const hasty = callWith({ timeoutMs: 1_000 });
		const { missing } = await ask(async () => records, hasty);
		expect(missing[0]).toBe("did not respond in time");
		expect(hasty.signal.aborted).toBe(false);
	});

	it("are those that were known last while the directory can't be read", async () => {
		let isBroken = false;
		const gone = recordOf("gone", "http://127.0.0.1:1");
		const { names, once } = await ask(async () => {
			if (isBroken) {
				throw new StorageUnavailable("no etcd");
			}
			return [gone];
		});
		expect(names).toEqual(["gone"]);
		isBroken = true;
		expect((await reportsOf(once)).names).toEqual(["gone"]);
	});
});
