import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describeWith, temporaryFolder } from "@plinth/test-support";
import { expect, it } from "vitest";

const run = promisify(execFile);
const moduleFolder = fileURLToPath(
	new URL("../../../../../packages/http2/testdata/h2spec", import.meta.url),
);
const serverFile = fileURLToPath(new URL("./h2spec-server.fixture.ts", import.meta.url));

/**
 * What fails: to a port that speaks HTTP/1.1 too, any other preface is a request of it. RFC 9113 deprecates priorities.
 */
const expectedFailures = [
	"Sends invalid connection preface",
	"Sends HEADERS frame that depend on itself",
	"Sends PRIORITY frame that depend on itself",
];

describeWith("go")("h2spec", () => {
	it("passes through the listener, but for priorities and what is HTTP/1.1", async () => {
		const folder = await temporaryFolder();
		const h2spec = join(folder, "h2spec");
		const report = join(folder, "report.xml");
		const build = ["build", "-o", h2spec, "github.com/summerwind/h2spec/cmd/h2spec"];
		await run("go", build, { cwd: moduleFolder });
		const server = spawn(process.execPath, [serverFile], { stdio: ["ignore", "pipe", "inherit"] });
		try {
			const [port] = await once(createInterface(server.stdout), "line");
			// Its exit code is 1 if a test fails, as some do.
			await run(h2spec, ["-h", "127.0.0.1", "-p", port, "-S", "-o", "5", "-j", report]).catch(
				() => {},
			);
		} finally {
			server.kill();
		}
		const tests = [
			...(await readFile(report, "utf8")).matchAll(
				/<testcase package="[^"]*" classname="([^"]*)"[^>]*>(.*?)<\/testcase>/gs,
			),
		];
		expect(tests.length).toBeGreaterThan(140);
		const failed = tests.filter(([, , result]) => result !== "").map(([, name]) => name);
		expect(failed).toEqual(expectedFailures);
	});
});
