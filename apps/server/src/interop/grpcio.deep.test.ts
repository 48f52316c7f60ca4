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
const grpcio = fileURLToPath(new URL("../../testdata/grpcio", import.meta.url));
const protos = fileURLToPath(new URL("../../testdata/grpc-interop/proto", import.meta.url));

describeWith("python3")("Python's grpcio", () => {
	it("calls the server, in cleartext and over TLS", async () => {
		const folder = await temporaryFolder();
		const environment = join(folder, "python");
		await run("python3", ["-m", "venv", environment]);
		const python = join(environment, "bin", "python");
		const requirements = join(grpcio, "requirements.txt");
		await run(python, ["-m", "pip", "install", "--quiet", "--requirement", requirements]);
		// The generated package is called grpc, as that of grpcio: it goes there.
		const { stdout: site } = await run(python, ["-c", "import grpc; print(grpc.__path__[0])"]);
		const generator = ["-m", "grpc_tools.protoc", `--proto_path=${protos}`];
		const outputs = [`--python_out=${site.trim()}/..`, `--grpc_python_out=${site.trim()}/..`];
		await run(python, [...generator, ...outputs, "grpc/testing/test.proto"]);

		const authority = await createAuthority();
		const caFile = join(folder, "ca.pem");
		await writeFile(caFile, authority.cert);
		const port = await serveInterop();
		const securePort = await serveInterop(await authority.issue());
		for (const args of [[`localhost:${port}`], [`localhost:${securePort}`, caFile]]) {
			const result = await run(python, [join(grpcio, "client.py"), ...args]).catch(
				(failure: unknown) => ({ stdout: `${Object(failure).stdout}${Object(failure).stderr}` }),
			);
			expect(result.stdout).toBe("15 of 15 passed\n");
		}
	});
});
