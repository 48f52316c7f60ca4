import { once } from "node:events";
import { createSecureServer } from "node:http2";
import { type AddressInfo, createServer } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { Code, createClient } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { describe, expect, it, onTestFinished } from "vitest";
import { createAuthority } from "../certificates.fixture.ts";
import { Connections } from "./connections.ts";

const timeoutMs = 300_000;

function connectionsOf(maxAddresses: number) {
	const connections = new Connections((next) => next, maxAddresses);
	onTestFinished(() => connections.close());
	const client = (address: string) => createClient(SchemaMixinService, connections.open(address));
	return { connections, client };
}

/** A server that accepts connections, and responds to no call. */
async function silentServer() {
	const server = createServer();
	const connected = once(server, "connection");
	server.listen(0, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => {
		server.close();
	});
	const { port } = server.address() as AddressInfo;
	return { address: `http://127.0.0.1:${port}`, connected };
}

/** An address at which no server runs. */
const gone = (port: number) => `http://127.0.0.1:${port}`;

const refused = { code: Code.Unavailable, rawMessage: expect.stringContaining("ECONNREFUSED") };

describe("connections to other deployments", () => {
	it("are opened again for those who hold a transport to an address that was forgotten", async () => {
		const { client } = connectionsOf(2);
		const held = client(gone(1));
		for (const port of [1, 2, 3, 4]) {
			await expect(client(gone(port)).reportReleases({}, { timeoutMs })).rejects.toMatchObject(
				refused,
			);
		}
		await expect(held.reportReleases({}, { timeoutMs })).rejects.toMatchObject(refused);
	});

	it("are not closed for others while calls are running", async () => {
		const { connections, client } = connectionsOf(2);
		const { address, connected } = await silentServer();
		const running = client(address).reportReleases({}, { timeoutMs });
		const reading = client(address)
			.watchImportedServiceDeletions({}, { timeoutMs })
			[Symbol.asyncIterator]()
			.next();
		const stopped = { code: Code.Unavailable, rawMessage: "the server is stopping" };
		const ended = [
			expect(running).rejects.toMatchObject(stopped),
			expect(reading).rejects.toMatchObject(stopped),
		];
		await connected;
		for (const port of [1, 2, 3, 4]) {
			await expect(client(gone(port)).reportReleases({}, { timeoutMs })).rejects.toMatchObject(
				refused,
			);
		}
		connections.close();
		await Promise.all(ended);
	});

	it("fail calls to malformed addresses, and all calls once they are closed", async () => {
		const { connections, client } = connectionsOf(2);
		for (const address of ["10.0.0.9:7576", "localhost:7576", ""]) {
			await expect(client(address).reportReleases({})).rejects.toMatchObject({
				code: Code.Unavailable,
				rawMessage: `"${address}" is not the address of a server`,
			});
		}
		connections.close();
		await expect(client(gone(1)).reportReleases({})).rejects.toThrow("the server is stopping");
	});

	it("accept the certificate of a sibling for the host that it announces", async () => {
		const authority = await createAuthority();
		const trusted = getCACertificates("default");
		setDefaultCACertificates([...trusted, authority.cert]);
		onTestFinished(() => setDefaultCACertificates(trusted));
		const server = createSecureServer(
			await authority.issue({ host: "balancer.example" }),
			(_, { stream }) =>
				stream.respond(
					{ ":status": 200, "content-type": "application/grpc", "grpc-status": `${Code.DataLoss}` },
					{ endStream: true },
				),
		);
		onTestFinished(() => void server.close());
		server.listen(0, "127.0.0.1");
		await once(server, "listening");
		// It listens on TCP.
		const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
		const connections = new Connections((next) => next);
		onTestFinished(() => connections.close());
		const call = (announced?: string) =>
			createClient(ResourceService, connections.open(address, announced)).read({});
		await expect(call("https://balancer.example")).rejects.toMatchObject({ code: Code.DataLoss });
		await expect(call("https://other.example")).rejects.toMatchObject({ code: Code.Unavailable });
		await expect(call()).rejects.toMatchObject({ code: Code.Unavailable });
	});
});
