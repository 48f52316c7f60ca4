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
import type { Scheduler } from "@plinth/runtime";
import { seededRandom } from "@plinth/runtime/testing";
import { AbsentService, ProbeService } from "../../testdata/src/gen/probe_pb.ts";
import { createInProcessClient } from "../client.ts";
import { createInProcessTransport } from "../transport.ts";
import type { Connect, Setup } from "./behavior.fixture.ts";

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
				return clients === "createClient"
					? connectionOver(transport)
					: {
							transport,
							client: createInProcessClient(ProbeService, transport),
							absent: createInProcessClient(AbsentService, transport),
						};
			},
			close: async () => {},
		}),
	};
}

interface WireOptions {
	readonly baseUrl: string;
	readonly sessionManager: Http2SessionManager;
	readonly interceptors: Interceptor[];
	readonly defaultTimeoutMs?: number;
}

/** connect-node on both ends of a socket, HTTP/2 without TLS. */
function overSocket(kind: "gRPC" | "Connect", create: (options: WireOptions) => Transport): Side {
	return {
		name: `${kind} over a socket`,
		kind,
		clients: "createClient",
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
				const baseUrl = `http://127.0.0.1:${address.port}`;
				const sessionManager = new Http2SessionManager(baseUrl);
				closers.push(async () => {
					sessionManager.abort();
					listener.close();
					await once(listener, "close");
				});
				return connectionOver(
					create({
						baseUrl,
						sessionManager,
						interceptors: setup.caller ?? [],
						...(setup.defaultTimeoutMs && { defaultTimeoutMs: setup.defaultTimeoutMs }),
					}),
				);
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

export const grpcOverSocket = overSocket("gRPC", (options) => createGrpcTransport(options));

export const connectOverSocket = overSocket("Connect", (options) =>
	createConnectTransport({ ...options, httpVersion: "2" }),
);

/** Runs scheduled tasks in an order that the seed determines, each in its own turn of the event loop. */
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
	};
}

function routesOf(setup: Setup) {
	return (router: ConnectRouter) => {
		router.service(ProbeService, setup.handlers);
	};
}

function connectionOver(transport: Transport) {
	return {
		transport,
		client: createClient(ProbeService, transport),
		absent: createClient(AbsentService, transport),
	};
}
