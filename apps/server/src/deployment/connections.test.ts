import { once } from "node:events";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { Code, createClient } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { describe, expect, it, onTestFinished } from "vitest";
import { createAuthority } from "../certificates.fixture.ts";
import { Connections } from "./connections.ts";

describe("connections to other deployments", () => {
	it("are one for each address, and forgotten where servers are gone", () => {
		const connections = new Connections((next) => next);
		const first = connections.open("http://127.0.0.1:1");
		const second = connections.open("http://127.0.0.1:2");
		for (let port = 3; port <= 4_096; port++) {
			connections.open(`http://127.0.0.1:${port}`);
		}
		expect(connections.open("http://127.0.0.1:1")).toBe(first);
		connections.open("http://127.0.0.1:5000");
		expect(connections.open("http://127.0.0.1:1")).toBe(first);
		expect(connections.open("http://127.0.0.1:2")).not.toBe(second);
		connections.close();
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
