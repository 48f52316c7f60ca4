import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createSecureServer } from "node:http2";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { TypeService } from "@plinth/proto";
import { Partition, TypeRegistry } from "@plinth/resource";
import { createTypeService, insecureAllowAll } from "@plinth/resource-service";
import { describeWith } from "@plinth/test-support";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startCinema } from "./cinema-server.fixture.ts";
import { runPlinth } from "./run-plinth.fixture.ts";

let folder: string;
let address: string;
let close: () => Promise<unknown>;

function makeCertificate(name: string): { readonly key: string; readonly cert: string } {
	const [key, cert] = [join(folder, `${name}.key`), join(folder, `${name}.pem`)];
	execFileSync(
		"openssl",
		[
			...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"],
			...["-nodes", "-days", "2", "-subj", "/CN=localhost"],
			...["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert],
		],
		{ stdio: "ignore" },
	);
	return { key, cert };
}

let server: { readonly key: string; readonly cert: string };
let client: { readonly key: string; readonly cert: string };

describeWith("openssl")("TLS", () => {
	beforeAll(async () => {
		folder = mkdtempSync(join(tmpdir(), "plinth-tls-"));
		server = makeCertificate("server");
		client = makeCertificate("client");
		const listening = createSecureServer(
			{
				key: readFileSync(server.key),
				cert: readFileSync(server.cert),
				ca: readFileSync(client.cert),
				requestCert: true,
				rejectUnauthorized: true,
			},
			connectNodeAdapter({
				routes: (router) => {
					const registry = new TypeRegistry([Partition]);
					const service = createTypeService({ registry, authorizer: insecureAllowAll });
					router.service(TypeService, service);
				},
			}),
		);
		await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
		address = `https://127.0.0.1:${(listening.address() as AddressInfo).port}`;
		close = () => new Promise((resolve) => listening.close(resolve));
	});
	afterAll(async () => {
		await close();
		rmSync(folder, { recursive: true });
	});

	it("trusts whom it is told to, and shows its own certificate", async () => {
		const env = { PLINTH_CA_FILE: server.cert };
		const files = ["--certificate-file", client.cert, "--key-file", client.key];
		const { code, out } = await runPlinth(["types", "-o", "name", "--server", address, ...files], {
			env,
		});
		expect({ code, out }).toEqual({ code: 0, out: "tenancy.v1.Partition\n" });
	});

	it("says what is wrong, with exit code 6", async () => {
		const untrusted = await runPlinth(["types", "--server", address]);
		expect(untrusted).toEqual({
			code: 6,
			out: "",
			err: `plinth: the certificate of ${address} is not trusted: self-signed certificate. Set the trusted certificates with --ca-file\n`,
		});
		const nameless = await runPlinth(["types", "--server", address, "--ca-file", server.cert]);
		expect(nameless.code).toBe(6);
		await using cinema = await startCinema();
		const noTls = await runPlinth([
			...["types", "--server", cinema.address.replace("http:", "https:")],
		]);
		expect(noTls.code).toBe(6);
		expect(noTls.err).toContain(`does not speak TLS: is it ${cinema.address}?`);
		const inClear = await runPlinth(["types", "--server", address.replace("https:", "http:")]);
		expect(inClear.code).toBe(6);
		expect(inClear.err).toContain(`is it ${address}?`);
	});
});
