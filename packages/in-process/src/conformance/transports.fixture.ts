import { once } from "node:events";
import http2 from "node:http2";
import {
	type ConnectRouter,
	createClient,
	type Interceptor,
	type Transport,
} from "@connectrpc/connect";
import {
	connectNodeAdapter,
	createConnectTransport,
	createGrpcTransport,
	Http2SessionManager,
} from "@connectrpc/connect-node";
import { createPlinthTransport } from "@plinth/rpc-client";
import type { Scheduler } from "@plinth/runtime";
import { seededRandom } from "@plinth/runtime/testing";
import { type CancelableTransport, createCancelingClient } from "@plinth/transport";
import { AbsentService, ProbeService } from "../../testdata/src/gen/probe_pb.ts";
import { createInProcessTransport } from "../transport.ts";
import type { Connect, Connection, Setup } from "./behavior.fixture.ts";

/** A transport under test. `close` ends the connections that it opened. */
export interface Side {
	readonly name: string;
	readonly kind: "in-process" | "gRPC" | "Connect";
	/** Which function creates the clients: the library's, or this package's. */
	readonly clients: "createClient" | "createInProcessClient";
	open(): { readonly connect: Connect; close(): Promise<void> };
}

export function inProcess(
	name: string,
	clients: Side["clients"],
	scheduler: () => Scheduler | undefined,
): Side {
	return {
		name,
		kind: "in-process",
		clients,
		open: () => ({
			connect: async (setup) => {
				const { caller, server, contextValues, requestGate, maxTimeoutMs } = setup;
				const chosen = scheduler();
				const transport = createInProcessTransport(routesOf(setup), {
					...(chosen && { scheduler: chosen }),
					...(setup.clock && { clock: setup.clock }),
					...(caller && { interceptors: caller }),
					...(setup.defaultTimeoutMs && { defaultTimeoutMs: setup.defaultTimeoutMs }),
					...(setup.shutdownSignal && { shutdownSignal: setup.shutdownSignal }),
					router: {
						...(server && { interceptors: server }),
						...(contextValues && { contextValues }),
						...(requestGate && { requestGate }),
						...(maxTimeoutMs && { maxTimeoutMs }),
					},
				});
				return clients === "createClient" ? connectionOver(transport) : cancelingOver(transport);
			},
			close: async () => {},
		}),
	};
}

interface WireOptions {
	readonly baseUrl: string;
	readonly interceptors: Interceptor[];
	readonly defaultTimeoutMs?: number;
}

/** A transport to a socket, and what closes its connections. */
interface WireTransport {
	readonly connection: Connection;
	close(): void;
}

/** A transport to connect-node's server over a socket, HTTP/2 without TLS. */
function overSocket(
	name: string,
	side: Pick<Side, "kind" | "clients">,
	create: (options: WireOptions) => WireTransport,
): Side {
	return {
		name,
		...side,
		open: () => {
			const closers: (() => Promise<void>)[] = [];
			const connect: Connect = async (setup) => {
				const { server, contextValues, requestGate, maxTimeoutMs } = setup;
				const listener = http2.createServer(
					connectNodeAdapter({
						routes: routesOf(setup),
						...(server && { interceptors: server }),
						...(contextValues && { contextValues }),
						...(requestGate && { requestGate }),
						...(maxTimeoutMs && { maxTimeoutMs }),
						...(setup.shutdownSignal && { shutdownSignal: setup.shutdownSignal }),
					}),
				);
				listener.listen(0, "127.0.0.1");
				await once(listener, "listening");
				const address = listener.address();
				if (address === null || typeof address === "string") {
					throw new Error("the listener has no port");
				}
				const { connection, close } = create({
					baseUrl: `http://127.0.0.1:${address.port}`,
					interceptors: setup.caller ?? [],
					...(setup.defaultTimeoutMs && { defaultTimeoutMs: setup.defaultTimeoutMs }),
				});
				closers.push(async () => {
					close();
					listener.close();
					await once(listener, "close");
				});
				return connection;
			};
			return {
				connect,
				close: async () => {
					for (const close of closers) {
						await close();
					}
				},
			};
		},
	};
}

function ofLibrary(
	create: (options: WireOptions & { readonly sessionManager: Http2SessionManager }) => Transport,
) {
	return (options: WireOptions): WireTransport => {
		const sessionManager = new Http2SessionManager(options.baseUrl);
		return {
			connection: connectionOver(create({ ...options, sessionManager })),
			close: () => sessionManager.abort(),
		};
	};
}

/** The transports over a socket: connect-node's, and those of `@plinth/rpc-client`. */
export const overSockets: readonly Side[] = [
	overSocket(
		"gRPC over a socket",
		{ kind: "gRPC", clients: "createClient" },
		ofLibrary((options) => createGrpcTransport(options)),
	),
	overSocket(
		"Connect over a socket",
		{ kind: "Connect", clients: "createClient" },
		ofLibrary((options) => createConnectTransport({ ...options, httpVersion: "2" })),
	),
	overSocket(
		"of createPlinthTransport over a socket, with createClient",
		{ kind: "gRPC", clients: "createClient" },
		(options) => {
			const transport = createPlinthTransport(options);
			return { connection: connectionOver(transport), close: () => transport.close() };
		},
	),
	overSocket(
		"of createPlinthTransport over a socket, with createCancelingClient",
		{ kind: "gRPC", clients: "createInProcessClient" },
		(options) => {
			const transport = createPlinthTransport(options);
			return { connection: cancelingOver(transport), close: () => transport.close() };
		},
	),
];

/** Runs scheduled tasks in an order that the seed determines, each in its own iteration of the event loop. */
export function shufflingScheduler(seed: number): Scheduler {
	const random = seededRandom(seed);
	const tasks: (() => void)[] = [];
	const runOne = () => {
		const [task] = tasks.splice(Math.floor(random.next() * tasks.length), 1);
		task?.();
	};
	return {
		schedule(task) {
			tasks.push(task);
			setImmediate(runOne);
		},
		turn: () => undefined,
	};
}

function routesOf(setup: Setup) {
	return (router: ConnectRouter) => {
		router.service(ProbeService, setup.handlers);
	};
}

function cancelingOver(transport: CancelableTransport): Connection {
	return {
		transport,
		client: createCancelingClient(ProbeService, transport),
		absent: createCancelingClient(AbsentService, transport),
	};
}

function connectionOver(transport: Transport): Connection {
	return {
		transport,
		client: createClient(ProbeService, transport),
		absent: createClient(AbsentService, transport),
	};
}
