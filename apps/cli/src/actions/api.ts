import { readFileSync } from "node:fs";
import { rawCall } from "../api/raw-call.ts";
import type { ServerSession } from "../api/server-session.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { usageFailure } from "../failure.ts";
import { readFailure } from "../read-failure.ts";

/** The flags of `plinth api`. */
export interface ApiFlags {
	readonly data?: string;
}

/** Calls a method by its name with a request in JSON, and prints the response, or each message of a stream. */
export async function api(
	session: ServerSession,
	name: string,
	{ data = "{}" }: ApiFlags,
): Promise<ExitCode> {
	const { io } = session;
	const method = name.replace(/^\//, "");
	if (!/^[\w.]+\.\w+\/\w+$/.test(method)) {
		throw usageFailure(
			`${JSON.stringify(name)} is not a method: write SERVICE/METHOD, as in plinth.type.v1.TypeService/ListTypes`,
		);
	}
	const body = await bodyOf(data, session);
	const { endpoint } = session.settings;
	// Nothing is called over it, but it warns of a token that is sent unencrypted.
	void session.connection;
	const messages = rawCall(endpoint, { method, body, clock: io.clock, signal: io.signal });
	for (;;) {
		const { done, value } = await session.call(messages.next());
		if (done) {
			return exitCodes.ok;
		}
		io.out(`${JSON.stringify(value, undefined, 2)}\n`);
	}
}

/** The request: JSON, `@FILE`, or `-` for standard input. */
async function bodyOf(data: string, { io }: ServerSession): Promise<string> {
	const text =
		data === "-" ? await io.readStdin() : data.startsWith("@") ? read(data.slice(1)) : data;
	try {
		JSON.parse(text);
	} catch (cause) {
		const problem = cause instanceof Error ? cause.message : String(cause);
		throw usageFailure(`the request is not JSON: ${problem}`, { cause });
	}
	return text;
}

function read(file: string): string {
	try {
		return readFileSync(file, "utf8");
	} catch (cause) {
		throw usageFailure(`can't read ${file}: ${readFailure(cause)}`, { cause });
	}
}
