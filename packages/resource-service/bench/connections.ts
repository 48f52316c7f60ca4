import { createServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { type Client, createClient, type ServiceImpl } from "@connectrpc/connect";
import {
	connectNodeAdapter,
	createConnectTransport,
	createGrpcTransport,
	Http2SessionManager,
} from "@connectrpc/connect-node";
import { createInProcessClient, createInProcessTransport } from "@plinth/in-process";
import { ResourceService } from "@plinth/proto";

/** A client of an implementation, and how to close both. */
export interface Connection {
	readonly client: Client<typeof ResourceService>;
	close(): void;
}

type Implementation = Partial<ServiceImpl<typeof ResourceService>>;

/** The ways to reach a service. */
export const connections = {
	"in-process": inProcess,
	Connect: (service: Implementation) => overSocket(service, createConnectTransport),
	gRPC: (service: Implementation) => overSocket(service, createGrpcTransport),
} as const;

async function inProcess(service: Implementation): Promise<Connection> {
	const transport = createInProcessTransport((router) => router.service(ResourceService, service));
	return { client: createInProcessClient(ResourceService, transport), close: () => {} };
}

async function overSocket(
	service: Implementation,
	createTransport: typeof createConnectTransport | typeof createGrpcTransport,
): Promise<Connection> {
	const server = createServer(
		connectNodeAdapter({ routes: (router) => router.service(ResourceService, service) }),
	);
	await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
	const { port } = server.address() as AddressInfo;
	const baseUrl = `http://127.0.0.1:${port}`;
	const sessionManager = new Http2SessionManager(baseUrl);
	const transport = createTransport({
		baseUrl,
		httpVersion: "2",
		useBinaryFormat: true,
		sessionManager,
	});
	return {
		client: createClient(ResourceService, transport),
		close() {
			sessionManager.abort();
			server.close();
		},
	};
}
