import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { temporaryFolder } from "@plinth/test-support";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { startCatalogServer } from "./catalog-server.fixture.ts";
import { plinthMain, runServer, TestProcess } from "./process.fixture.ts";
import { runEditor } from "./run-editor.ts";
import { runPlinth, startPlinth } from "./run-plinth.fixture.ts";

const catalogYaml = fileURLToPath(
	new URL("../../../examples/catalog/catalog.yaml", import.meta.url),
);

/** A server that responds to HTTP. */
async function startProbed(port = 0): Promise<Server> {
	const server = createServer((_, response) => response.end("ok"));
	server.listen(port, "127.0.0.1");
	await once(server, "listening");
	onTestFinished(() => {
		server.closeAllConnections();
		server.close();
	});
	return server;
}

const portOf = (server: Server) => (server.address() as AddressInfo).port;

/** The environment of commands for the server. */
const envFor = (address: string, folder: string) => ({
	PLINTH_SERVER: address,
	XDG_CONFIG_HOME: join(folder, "configuration"),
});

describe("plinth, with a server of the catalog", () => {
	it("takes a newcomer through the catalog, wrong input included", async () => {
		const folder = await temporaryFolder();
		const { address } = await startCatalogServer(join(folder, "data"));
		const env = envFor(address, folder);
		const plinth = (...args: readonly string[]) => runPlinth(args, { env });

		expect((await plinth("types", "-o", "name")).out).toContain("catalog.v1.Workload\n");

		// The file as it stands, but for the ports, which this machine may have taken.
		const probed = await Promise.all([startProbed(), startProbed(), startProbed()]);
		let yaml = await readFile(catalogYaml, "utf8");
		for (const [at, server] of probed.entries()) {
			yaml = yaml.replace(`900${at + 1}\n`, `${portOf(server)}\n`);
		}
		const file = join(folder, "catalog.yaml");
		await writeFile(file, yaml.replace("port_name: http\n---", "prt_name: http\n---"));
		expect(await plinth("apply", "-f", file)).toEqual({
			code: 2,
			out: "",
			err: `plinth: ${file}:10:3 (document 1): data.prt_name: Service has no such field; did you mean port_name?\nnothing was changed\n`,
		});
		await writeFile(file, yaml);
		const names = ["Service/web"];
		for (const n of [1, 2, 3]) {
			names.push(`Workload/web-${n}`, `HealthCheck/web-${n}`);
		}
		const lines = (outcome: string) => names.map((name) => `catalog.v1.${name} ${outcome}\n`);
		expect(await plinth("apply", "-f", file)).toEqual({
			code: 0,
			out: lines("created").join(""),
			err: "",
		});
		expect((await plinth("apply", "-f", file)).out).toBe(lines("unchanged").join(""));

		const checks = ["web-1", "web-2", "web-3"];
		const healthy = await plinth("wait", "HealthCheck", ...checks, "--for=condition=Healthy");
		expect(healthy.code).toBe(0);
		expect((await plinth("get", "Workload")).out).toMatch(
			/^NAME {3}HOST {7}PORTS +STATUS {2}AGE\nweb-1 {2}127\.0\.0\.1 {2}http=\d+ /,
		);

		const watch = startPlinth(["watch", "HealthCheck", "web-2"], { env });
		await watch.prints(/present +web-2/);
		const second = probed[1];
		second?.closeAllConnections();
		second?.close();
		await watch.prints(/changed +web-2 .*Healthy=False \(ConnectionRefused\)/);
		watch.interrupt();
		expect((await watch.ended).code).toBe(130);
		expect((await plinth("describe", "HealthCheck", "web-2")).out).toContain("refuses connections");
		expect((await plinth("status", "HealthCheck")).out).toMatch(/web-2 +Healthy +False/);

		const edit = await runPlinth(["edit", "Workload", "web-1"], {
			env: { ...env, EDITOR: "sed -i s/127.0.0.1/localhost/" },
			runEditor,
		});
		expect(edit.out).toBe("catalog.v1.Workload/web-1 updated\n");
		expect((await plinth("get", "Workload", "web-1", "-o", "yaml")).out).toContain(
			"host: localhost\n",
		);

		// What it is now is backed up, and is there again in another server.
		const copy = join(folder, "copy.sqlite");
		expect((await plinth("backup", copy)).out).toMatch(/contains \d+ resources at version \d+\n/);
		const restored = join(folder, "restored");
		expect((await runServer(["restore", copy, "--data-dir", restored])).code).toBe(0);
		const other = await startCatalogServer(restored);
		const there = await plinth("get", "Workload", "-o", "name", "--server", other.address);
		expect(there.out).toBe(checks.map((name) => `catalog.v1.Workload/${name}\n`).join(""));

		expect((await plinth("controllers")).out).toMatch(/^catalog-prober +catalog\.v1\.HealthCheck/m);
		const one = await plinth("controllers", "catalog-prober");
		expect(one.out).toMatch(/^manages: +catalog\.v1\.HealthCheck$/m);
		expect(await plinth("controllers", "prober")).toMatchObject({
			code: 3,
			err: 'plinth: there is no controller "prober": `plinth controllers` lists all\n',
		});
		expect((await plinth("controllers", "catalog-probe")).err).toBe(
			'plinth: there is no controller "catalog-probe"; did you mean catalog-prober? `plinth controllers` lists all\n',
		);
		// It is probed again and again.
		await vi.waitFor(
			async () => {
				const check = await plinth("describe", "HealthCheck", "web-1");
				expect(check.out).toMatch(/^controllers:\n +CONTROLLER +STATE\n +catalog-prober +done/m);
			},
			{ timeout: 300_000, interval: 100 },
		);
		expect((await plinth("delete", "-f", file)).code).toBe(0);
		expect((await plinth("get", "Service", "web")).code).toBe(3);
		// What the service owned goes with it.
		const gone = await plinth("wait", "ServiceEndpoints", "web", "--for=delete");
		expect(gone.code).toBe(0);
	});
});

describe("plinth, a process of its own", () => {
	it("reads standard input, explains what is refused, and ends quietly with the reader of a pipe", async () => {
		const folder = await temporaryFolder();
		const { address } = await startCatalogServer(join(folder, "data"));
		const env = envFor(address, folder);
		const port = "type: Workload\nname: web-1\ndata: {host: a, ports: {http: 70000}}\n";
		const apply = new TestProcess(process.execPath, [plinthMain, "apply", "-f", "-"], env, port);
		expect(await apply.ended).toEqual({
			code: 1,
			out: "",
			err: 'standard input:3:31 (document 1): resource.data.ports["http"] invalid: 70000 is not between 1 and 65535\n',
		});

		// The reader has long exited when the command writes. The pipe's exit code is that of the command.
		const piped = new TestProcess(
			"bash",
			[
				"-c",
				`set -o pipefail; "${process.execPath}" "${plinthMain}" list Namespace -o yaml | true`,
			],
			env,
		);
		expect(await piped.ended).toEqual({ code: 0, out: "", err: "" });
	});

	it("watches across a restart of the server, until it is interrupted", async () => {
		const folder = await temporaryFolder();
		const data = join(folder, "data");
		const first = await startCatalogServer(data);
		const env = envFor(first.address, folder);
		const create = (name: string) =>
			runPlinth(["apply", "-f", "-"], {
				env,
				stdin: `{"type": "tenancy.v1.Namespace", "name": "${name}"}`,
			});
		await create("before");
		const watch = new TestProcess(
			process.execPath,
			[plinthMain, "watch", "Namespace", "-o", "name"],
			env,
		);
		await watch.prints(/Namespace\/before/);
		await first.stop();
		await watch.prints(/lost the connection/);
		await startCatalogServer(data, Number(new URL(first.address).port));
		await create("after");
		await watch.prints(/Namespace\/after/);
		watch.kill("SIGINT");
		const { code, out, err } = await watch.ended;
		expect(code).toBe(130);
		expect(err).toContain("reconnected to");
		expect(out.match(/Namespace\/before/g)).toHaveLength(1);
	});
});
