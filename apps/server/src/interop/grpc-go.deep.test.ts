import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import { expect, it } from "vitest";
import { createAuthority } from "../certificates.fixture.ts";
import { serveInterop } from "./serve-interop.fixture.ts";

const run = promisify(execFile);
const moduleFolder = fileURLToPath(new URL("../../testdata/grpc-interop", import.meta.url));

/** Those of the client that need nothing from Google's cloud, and no load balancing. */
const cases = [
	"empty_unary",
	"large_unary",
	"client_streaming",
	"server_streaming",
	"ping_pong",
	"empty_stream",
	"timeout_on_sleeping_server",
	"cancel_after_begin",
	"cancel_after_first_response",
	"status_code_and_message",
	"special_status_message",
	"custom_metadata",
	"unimplemented_method",
	"unimplemented_service",
	"rpc_soak",
	"channel_soak",
];

describeWith("go")("grpc-go's interoperability client", () => {
	it.each(["cleartext", "TLS"])("passes its tests over %s", async (security) => {
		const folder = await temporaryFolder();
		const client = join(folder, "client");
		await run("go", ["build", "-o", client, "google.golang.org/grpc/interop/client"], {
			cwd: moduleFolder,
		});
		const authority = await createAuthority();
		const caFile = join(folder, "ca.pem");
		await writeFile(caFile, authority.cert);
		const options = {
			server_host: "localhost",
			server_port: await serveInterop(security === "TLS" ? await authority.issue() : undefined),
			use_tls: security === "TLS",
			use_test_ca: true,
			ca_file: caFile,
			// A busy machine is slow.
			soak_overall_timeout_seconds: 600,
			soak_per_iteration_max_acceptable_latency_ms: 60_000,
		};
		const flags = Object.entries(options).map(([flag, value]) => `--${flag}=${value}`);
		const failures: string[] = [];
		for (const name of cases) {
			await run(client, [...flags, `--test_case=${name}`]).catch((failure: unknown) => {
				failures.push(`${name}: ${Object(failure).stderr}`);
			});
		}
		expect(failures).toEqual([]);
	});
});
