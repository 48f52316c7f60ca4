import { createServer as createHttp1Server } from "node:http";
import {
	createServer as createHttp2Server,
	createSecureServer as createHttp2TlsServer,
} from "node:http2";
import { createServer as createHttp1TlsServer } from "node:https";
import { createRegistry } from "@bufbuild/protobuf";
import type { ConnectRouter, ConnectRouterOptions } from "@connectrpc/connect";
import { compressionBrotli, compressionGzip, connectNodeAdapter } from "@connectrpc/connect-node";
import { createRpcRouter, type RpcRouter } from "@plinth/rpc-server";
import { silentLogger, systemClock } from "@plinth/runtime";
import {
	ConformanceService,
	file_connectrpc_conformance_v1_service,
} from "../../testdata/conformance/gen/connectrpc/conformance/v1/service_pb.ts";
import { FieldLimits } from "../decoding/field-limits.ts";
import { IncompleteMessages } from "../decoding/incomplete-messages.ts";
import { RequestMeter } from "../decoding/request-meter.ts";
import { http2OfTests } from "../http2.fixture.ts";
import { EventLoopTurns } from "../limits/event-loop-turns.ts";
import { Exchanges } from "../listener/exchanges.ts";
import { defaultListenerLimits } from "../listener/limits.ts";
import { openListener } from "../listener/listener.ts";
import { createPlainEndpoints } from "../listener/plain-endpoints.ts";
import { createRpcHandler } from "../listener/rpc-handler.ts";
import type { TlsMaterial } from "../listener/tls/tls-files.ts";
import { conformanceService } from "./conformance-service.fixture.ts";

/** The requirements of the conformance runner for a server. */
export interface ConformanceServerOptions {
	/** The required version; the listener of Plinth serves both on any port. */
	readonly httpVersion: 1 | 2;
	readonly tls: TlsMaterial | undefined;
	/** The size of a request message. */
	readonly messageBytes: number;
	/** Whether compression is accepted. Connect's adapter accepts it, Plinth does not. */
	readonly isCompressed: boolean;
}

const host = "127.0.0.1";

const registry = createRegistry(file_connectrpc_conformance_v1_service);

/** The options that both servers share. */
function routerOptions({
	messageBytes,
	isCompressed,
}: ConformanceServerOptions): ConnectRouterOptions {
	return {
		acceptCompression: isCompressed ? [compressionGzip, compressionBrotli] : [],
		jsonOptions: { registry },
		readMaxBytes: messageBytes,
	};
}

function addService<R extends ConnectRouter>(router: R): R {
	router.service(ConformanceService, conformanceService);
	return router;
}

/** Serves services as Plinth serves its own, with the router, the meter and the listener. Returns the port. */
export async function servePlinth(
	options: ConformanceServerOptions,
	addServices: (router: RpcRouter) => RpcRouter = addService,
): Promise<number> {
	const { tls, messageBytes } = options;
	const clock = systemClock;
	const logger = silentLogger;
	const limits = { ...defaultListenerLimits, messageBytes };
	const router = addServices(createRpcRouter({ ...routerOptions(options), clock }));
	const listener = await openListener({
		...http2OfTests(),
		address: { host, port: 0 },
		handler: createRpcHandler({
			router,
			fallback: createPlainEndpoints(router, () => ({ problems: [], pending: [] })),
			exchanges: new Exchanges({ clock, logger, limits, onCut: () => {} }),
			logger,
			meter: new RequestMeter({
				fields: new FieldLimits({
					registry,
					messageFields: limits.messageFields,
					methods: new Map(),
				}),
				messageBytes: () => messageBytes,
				turns: new EventLoopTurns(clock),
				incomplete: new IncompleteMessages(limits.incompleteBytes, messageBytes, clock),
				onRefused: () => {},
			}),
		}),
		limits,
		clock,
		logger,
		...(tls && { tls }),
	});
	return listener.address.port;
}

/** Serves the service with Connect's own adapter. Returns the port. */
export async function serveConnect(options: ConformanceServerOptions): Promise<number> {
	const handler = connectNodeAdapter({ ...routerOptions(options), routes: addService });
	const { httpVersion, tls } = options;
	const secure = tls && { ...tls, requestCert: tls.ca !== undefined };
	const server =
		httpVersion === 1
			? secure === undefined
				? createHttp1Server(handler)
				: createHttp1TlsServer(secure, handler)
			: secure === undefined
				? createHttp2Server(handler)
				: createHttp2TlsServer(secure, handler);
	const { promise, resolve } = Promise.withResolvers<void>();
	server.listen(0, host, resolve);
	await promise;
	const address = server.address();
	if (address === null || typeof address === "string") {
		throw new Error("the server has no port");
	}
	return address.port;
}
