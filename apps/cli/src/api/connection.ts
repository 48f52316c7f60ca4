import { readFileSync } from "node:fs";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { ResourceService, TypeService } from "@plinth/proto";
import { createPlinthTransport } from "@plinth/rpc-client";
import { usageFailure } from "../failure.ts";
import { readFailure } from "../read-failure.ts";

/** The address of a server, and the credentials for it. */
export interface Endpoint {
	/** A URL such as `http://127.0.0.1:7575`. */
	readonly server: string;
	readonly token?: string | undefined;
	/** PEM files: trusted CA certificates, the client certificate and its key. */
	readonly caFile?: string | undefined;
	readonly certificateFile?: string | undefined;
	readonly keyFile?: string | undefined;
	/** For each call except watches. None if it is absent. */
	readonly requestTimeoutMs?: number | undefined;
}

/** Clients of the services of one server. Disposal closes all connections. */
export interface Connection extends Disposable {
	readonly resources: Client<typeof ResourceService>;
	readonly types: Client<typeof TypeService>;
	/** A client of a service that few commands call. */
	client<Service extends DescService>(service: Service): Client<Service>;
}

/** Idle connections are pinged, so that a watch detects a dead one. */
const pings = { pingIntervalMs: 10_000, pingTimeoutMs: 10_000 };

/** A connection to a server, opened by its first call: gRPC. */
export function connect(endpoint: Endpoint): Connection {
	const { server, requestTimeoutMs } = endpoint;
	const transport = createPlinthTransport({
		baseUrl: server,
		headers: endpoint.token === undefined ? {} : { authorization: `Bearer ${endpoint.token}` },
		...(requestTimeoutMs !== undefined && { defaultTimeoutMs: requestTimeoutMs }),
		nodeOptions: tlsOptions(endpoint),
		...pings,
	});
	return {
		resources: createClient(ResourceService, transport),
		types: createClient(TypeService, transport),
		client: (service) => createClient(service, transport),
		[Symbol.dispose]: () => transport.close(),
	};
}

/** PEM texts. */
type TlsFiles = Partial<Record<"ca" | "cert" | "key", string>>;

/** The files that an endpoint names. @throws Failure if one can't be read. */
export function tlsOptions(
	endpoint: Pick<Endpoint, "caFile" | "certificateFile" | "keyFile">,
): TlsFiles {
	const files = {
		ca: endpoint.caFile,
		cert: endpoint.certificateFile,
		key: endpoint.keyFile,
	};
	return Object.fromEntries(
		Object.entries(files).flatMap(([option, file]) =>
			file === undefined ? [] : [[option, readPem(file)]],
		),
	);
}

function readPem(file: string): string {
	try {
		return readFileSync(file, "utf8");
	} catch (cause) {
		throw usageFailure(`can't read ${file}: ${readFailure(cause)}`, { cause });
	}
}
