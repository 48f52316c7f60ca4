import { execFile } from "node:child_process";
import { promisify } from "node:util";

const run = promisify(execFile);

/** Runs curl with these arguments. Returns its output. */
export async function curl(...args: readonly string[]): Promise<string> {
	const { stdout } = await run("curl", ["--silent", "--show-error", ...args]);
	return stdout;
}

/** Calls a method of the resource service as JSON, by Connect. Returns the parsed output of curl. */
export async function curlJson(address: string, method: string, request: object): Promise<unknown> {
	return JSON.parse(
		await curl(
			`${address}/plinth.resource.v1.ResourceService/${method}`,
			"--header",
			"content-type: application/json",
			"--data",
			JSON.stringify(request),
		),
	);
}
