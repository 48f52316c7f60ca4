import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { temporaryFolder } from "@plinth/test-support";
import type { Http2Implementation } from "../listener/http2/http2-server.ts";

const run = promisify(execFile);
const moduleFolder = fileURLToPath(new URL("../../testdata/conformance", import.meta.url));
/** Go links it once, and later only finds that it is up to date. */
const runner = fileURLToPath(
	new URL("../../node_modules/.cache/connectconformance", import.meta.url),
);
const mainFile = fileURLToPath(new URL("./main.fixture.ts", import.meta.url));

/** The cases that fail if much of the timeout is over when the call arrives. */
const timed = "Deadline Propagation/";

/**
 * The cases with too large messages. Over HTTP/2, Connect's adapter leaves the rest of such a request unread, until other
 * calls on the connection have no window left: the runner would wait forever.
 */
const unread = "Server Message Size/";

/** The features that the runner tests, in addition to its defaults: all protocols, codecs and kinds of streams. */
export interface ConformanceFeatures {
	readonly compressions: readonly ("IDENTITY" | "GZIP" | "BR")[];
	/** Over TLS too, with and without client certificates. */
	readonly tls: boolean;
	/** What serves HTTP/2: Plinth's own framing unless set. */
	readonly http2?: Http2Implementation;
	/** Whether to leave out the cases over HTTP/1.1, which are the same with each implementation of HTTP/2. */
	readonly isHttp2Only?: boolean;
}

/** The outcome of the cases that were run. */
export interface ConformanceReport {
	readonly cases: number;
	/** The output of the runner about failed cases. */
	readonly failures: string;
	/** Cases that fail here, and pass with Connect's own adapter. */
	readonly failedHere: readonly string[];
	/** Cases that fail with both. */
	readonly failedByBoth: readonly string[];
}

/**
 * Runs the cases of the conformance runner that apply to some features against the listener of the server. Those that
 * fail are run again against Connect's adapter, if it gives a response to all of them. If all that fail compare times,
 * they are run once more by themselves before that: a busy machine delays them.
 */
export async function runConformance(features: ConformanceFeatures): Promise<ConformanceReport> {
	const folder = await temporaryFolder();
	await run("go", ["build", "-o", runner, "connectrpc.com/conformance/cmd/connectconformance"], {
		cwd: moduleFolder,
	});
	const config = join(folder, "config.yaml");
	// JSON is YAML.
	await writeFile(config, JSON.stringify(configOf(features)));
	const accepted = features.compressions.some((name) => name !== "IDENTITY")
		? "compressed"
		: "identity";
	const outputOf = async (server: "plinth" | "connect", ...cases: readonly string[]) => {
		const selected = cases.flatMap((name) => ["--run", name]);
		const command = [process.execPath, mainFile, server, accepted];
		const args = ["--conf", config, "--mode", "server", "--max-servers", "2", ...selected];
		// Its exit code is 1 if a case fails. A case that gets no response would wait forever.
		const env = { ...process.env, PLINTH_HTTP2: features.http2 ?? "plinth" };
		const options = { maxBuffer: 1024 ** 3, timeout: 300_000, env };
		const { stdout } = await run(runner, [...args, "--", ...command], options).catch(
			outputOfFailed,
		);
		return stdout;
	};
	const all = await outputOf("plinth");
	const late = failedIn(all);
	const isLate = late.length > 0 && late.every((name) => name.startsWith(timed));
	const here = isLate ? await outputOf("plinth", ...late) : all;
	const failed = failedIn(here);
	const comparable = failed.filter((name) => !name.startsWith(unread));
	const failedThere = new Set(
		comparable.length === 0 ? [] : failedIn(await outputOf("connect", ...comparable)),
	);
	return {
		cases: Number(/^Total cases: (\d+)$/m.exec(all)?.[1] ?? 0),
		failures: here.slice(0, here.indexOf("Total cases: ")).trim(),
		failedHere: failed.filter((name) => !failedThere.has(name)),
		failedByBoth: failed.filter((name) => failedThere.has(name)),
	};
}

function configOf({ compressions, tls, isHttp2Only = false }: ConformanceFeatures) {
	return {
		features: {
			versions: [...(isHttp2Only ? [] : ["HTTP_VERSION_1"]), "HTTP_VERSION_2"],
			compressions: compressions.map((name) => `COMPRESSION_${name}`),
			supportsTls: tls,
			supportsTlsClientCerts: tls,
		},
	};
}

function failedIn(output: string): readonly string[] {
	return [...output.matchAll(/^FAILED: (.*):$/gm)].map(([, name = ""]) => name);
}

function outputOfFailed(failure: unknown): { readonly stdout: string } {
	const stdout: unknown = Object(failure).stdout;
	const code: unknown = Object(failure).code;
	if (typeof stdout !== "string" || code !== 1) {
		throw failure;
	}
	return { stdout };
}
