import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect as connectTcp } from "node:net";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf, Namespace, typeOf } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { describe, expect, it } from "vitest";
import { type Authority, createAuthority, filesOf, type Issued } from "../certificates.fixture.ts";
import { startServer } from "../started-server.fixture.ts";

const id = idOf(Namespace, "default");

interface Started {
	readonly address: string;
	readonly port: number;
	readonly ca: Authority;
	/** Puts another certificate in place, and has the server look. */
	replace(issued: Issued): Promise<void>;
	readonly paths: { readonly cert: string; readonly key: string };
}

async function startTls(
	options: { readonly clientCa?: string; readonly headersMs?: number } = {},
): Promise<Started> {
	const ca = await createAuthority();
	const { cert, key } = await ca.issue();
	const files = filesOf({ cert, key, clientCa: options.clientCa ?? "" });
	const server = await startServer({
		tls: {
			certFile: files.cert,
			keyFile: files.key,
			...(options.clientCa !== undefined && { clientCaFile: files.clientCa }),
		},
		...(options.headersMs !== undefined && { limits: { headersMs: options.headersMs } }),
	});
	return {
		ca,
		paths: files,
		address: server.address,
		port: Number(new URL(server.address).port),
		async replace(issued) {
			writeFileSync(files.cert, issued.cert);
			writeFileSync(files.key, issued.key);
			await server.reload();
		},
	};
}

function clientsOf(baseUrl: string, nodeOptions: ConnectionOptions) {
	return [
		createConnectTransport({ baseUrl, httpVersion: "1.1", nodeOptions }),
		createConnectTransport({ baseUrl, httpVersion: "2", nodeOptions }),
		createGrpcTransport({ baseUrl, nodeOptions }),
		createPlinthTransport({ baseUrl, nodeOptions }),
	].map((transport) => createClient(ResourceService, transport));
}

/** The result of a TLS connection: the response to a request on it, or the code of its error. */
async function asked(port: number, options: ConnectionOptions): Promise<string> {
	const socket = connectTls({ host: "127.0.0.1", port, ...options });
	const response = new Promise<string>((resolve) => {
		let text = "";
		socket.setEncoding("latin1");
		socket.on("data", (data: string) => {
			text += data;
		});
		socket.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message));
		socket.on("close", () => resolve(text.split("\r\n", 1)[0] ?? ""));
	});
	socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
	return response;
}

async function serialOf(port: number, ca: string): Promise<string> {
	const socket = connectTls({ host: "127.0.0.1", port, ca });
	await once(socket, "secureConnect");
	const { serialNumber } = socket.getPeerCertificate();
	socket.destroy();
	return serialNumber;
}

describe("a listener with TLS", () => {
	it("serves all protocols to clients that trust its authority", async () => {
		const { address, ca } = await startTls();
		expect(address).toMatch(/^https:/);
		for (const client of clientsOf(address, { ca: ca.cert })) {
			const { resource } = await client.read({ id });
			expect(resource?.id?.name).toBe("default");
		}
	});

	it("is not trusted by clients of another authority", async () => {
		const { port, address } = await startTls();
		const other = await createAuthority();
		expect(await asked(port, { ca: other.cert })).toMatch(/CERT|ISSUER|SIGNATURE/);
		for (const client of clientsOf(address, { ca: other.cert })) {
			await expect(client.read({ id })).rejects.toThrow(/certificate/);
		}
	});

	it("does not respond to plaintext, nor old versions of TLS", async () => {
		const { port, ca } = await startTls();
		const socket = connectTcp(port, "127.0.0.1");
		socket.on("error", () => {});
		socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
		let response = "";
		socket.on("data", (data) => {
			response += data.toString("latin1");
		});
		await once(socket, "close");
		expect(response).not.toContain("HTTP/1.1 200");
		expect(
			await asked(port, { ca: ca.cert, minVersion: "TLSv1", maxVersion: "TLSv1.1" }),
		).not.toMatch(/^HTTP/);
	});

	it.each([
		["before the handshake", false],
		["after it", true],
	])("closes a connection that is silent %s", async (_when, handshakes) => {
		const { port, ca } = await startTls({ headersMs: 200 });
		const socket = handshakes
			? connectTls({ host: "127.0.0.1", port, ca: ca.cert })
			: connectTcp(port, "127.0.0.1");
		socket.on("error", () => {});
		socket.resume();
		await once(socket, "close");
	});

	it("keeps a connection that has sent headers", async () => {
		const { address, ca } = await startTls({ headersMs: 300 });
		const session = connectHttp2(address, { ca: ca.cert });
		const first = session.request({ ":path": "/healthz" });
		first.resume();
		await once(first, "close");
		await new Promise((resolve) => setTimeout(resolve, 600));
		expect(session.closed).toBe(false);
		session.destroy();
	});

	it("shows a replaced certificate to new connections, while open ones go on", async () => {
		const { address, port, ca, replace } = await startTls();
		const [client] = clientsOf(address, { ca: ca.cert }).slice(1);
		const watch = client?.watchList({ type: typeOf(Namespace.type), tenancy: { partition: "*" } });
		const events = watch?.[Symbol.asyncIterator]();
		await events?.next();
		const before = await serialOf(port, ca.cert);
		await replace(await ca.issue());
		const after = await serialOf(port, ca.cert);
		expect(after).not.toBe(before);
		const { done } = (await events?.next()) ?? {};
		expect(done).toBe(false);
		expect((await client?.read({ id }))?.resource?.id?.name).toBe("default");
		await events?.return?.();
	});

	it("keeps its certificate if the new one does not match its key", async () => {
		const { port, ca, replace } = await startTls();
		const before = await serialOf(port, ca.cert);
		const [one, other] = [await ca.issue(), await ca.issue()];
		await replace({ cert: one.cert, key: other.key });
		expect(await serialOf(port, ca.cert)).toBe(before);
		await replace({ cert: "nonsense", key: "nonsense" });
		expect(await serialOf(port, ca.cert)).toBe(before);
		await replace(other);
		expect(await serialOf(port, ca.cert)).not.toBe(before);
	});

	it("does not start with files that do not fit, and names the file", async () => {
		const ca = await createAuthority();
		const [one, other] = [await ca.issue(), await ca.issue()];
		const files = filesOf({ cert: one.cert, key: other.key, nothing: "nothing" });
		await expect(
			startServer({ tls: { certFile: files.cert, keyFile: files.key } }),
		).rejects.toThrow(
			`${files.key} does not contain the key, in PEM, of the certificate in ${files.cert}`,
		);
		await expect(
			startServer({ tls: { certFile: files.nothing, keyFile: files.key } }),
		).rejects.toThrow(`${files.nothing} contains no certificate in PEM`);
	});
});

describe("a listener with mutual TLS", () => {
	it.each([
		["of its authority", "good", true],
		["that has expired", "expired", false],
		["of another authority", "foreign", false],
		["that it does not have", "none", false],
	] as const)("serves a client with a certificate %s: %s", async (_what, kind, served) => {
		const clients = await createAuthority("Clients");
		const { port, address, ca } = await startTls({ clientCa: clients.cert });
		const own =
			kind === "none"
				? {}
				: kind === "foreign"
					? await (await createAuthority("Clients")).issue()
					: await clients.issue({ name: "client", expired: kind === "expired" });
		const response = await asked(port, { ca: ca.cert, ...own });
		if (served) {
			expect(response).toBe("HTTP/1.1 200 OK");
		} else {
			expect(response).not.toMatch(/^HTTP/);
		}
		for (const client of clientsOf(address, { ca: ca.cert, ...own })) {
			const read = client.read({ id }).then(
				() => true,
				() => false,
			);
			expect(await read).toBe(served);
		}
	});
});
