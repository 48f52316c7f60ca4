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
const moduleFolder = fileURLToPath(new URL("../../testdata/h2spec", import.meta.url));
const serverFile = fileURLToPath(new URL("./h2spec-server.fixture.ts", import.meta.url));

/**
 * What fails of h2spec, which tests for RFC 7540. RFC 9113, section 5.3, deprecates priorities: a stream that depends
 * on itself is no error any more.
 */
const contradicted = [
	"http2/5.3.1: Sends HEADERS frame that depend on itself",
	"http2/5.3.1: Sends PRIORITY frame that depend on itself",
];

/** The tests of a JUnit report: their names, and whether they passed. */
function readReport(xml: string): ReadonlyMap<string, boolean> {
	const cases = xml.matchAll(
		/<testcase package="([^"]*)" classname="([^"]*)"[^>]*>(.*?)<\/testcase>/gs,
	);
	return new Map(
		[...cases].map(([, section, name, result]) => [`${section}: ${name}`, result === ""]),
	);
}

describeWith("go")("h2spec", () => {
	it("passes all tests, also the strict ones, but those that RFC 9113 contradicts", async () => {
		const folder = await temporaryFolder();
		const h2spec = join(folder, "h2spec");
		const report = join(folder, "report.xml");
		await run("go", ["build", "-o", h2spec, "github.com/summerwind/h2spec/cmd/h2spec"], {
			cwd: moduleFolder,
		});
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
		const tests = readReport(await readFile(report, "utf8"));
		expect(tests.size).toBeGreaterThan(140);
		const failed = [...tests].filter(([, hasPassed]) => !hasPassed).map(([name]) => name);
		expect(failed).toEqual(contradicted);
	});
});
