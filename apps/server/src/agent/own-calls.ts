import { readFile } from "node:fs/promises";
import type { Interceptor } from "@connectrpc/connect";
import { createPlinthTransport, type PlinthTransport } from "@plinth/rpc-client";
import type { Logger, Runtime } from "@plinth/runtime";
import { streamErrorsOfAgents } from "../agents-listener/stream-errors.ts";
import { formatListenAddress } from "../configuration/listen-address.ts";
import { FileError } from "../configuration/located-yaml.ts";
import { defaultListenerLimits, type ListenerLimits } from "../listener/limits.ts";
import { openListener } from "../listener/listener.ts";
import type { RequestHandler } from "../listener/request-handler.ts";
import type { OwnSecret } from "./own-secret.ts";

/** Options of `openOwnCalls`. */
export interface OwnCallsOptions {
	/** A file with the token of the calls; without it, they are made without a token. */
	readonly tokenFile: string | undefined;
	/** Forwards the calls, and refuses all others. */
	readonly handler: RequestHandler;
	/** What `handler` knows the calls by. */
	readonly secret: OwnSecret;
	readonly runtime: Pick<Runtime, "clock">;
	readonly logger: Logger;
}

/** The calls that an agent makes itself, through its own forwarding. */
export interface OwnCalls {
	/** Calls with the token of the file. */
	readonly transport: PlinthTransport;
	/** Calls with the headers of each call alone. */
	readonly transportWithoutToken: PlinthTransport;
	/** Reads the token file again. @throws FileError if it can't be read: the token before is used then. */
	reload(): Promise<void>;
	close(): Promise<void>;
}

/** The limits of the agent's own calls, whatever those of its clients are. */
export const ownCallLimits: ListenerLimits = {
	...defaultListenerLimits,
	// All streams of rights are on one connection: none waits until another one ends.
	streamsPerConnection: 4_096,
};

const anyPort = { host: "127.0.0.1", port: 0 } as const;

/**
 * Opens a port of their own for the calls of an agent: that for clients may require certificates. Other programs on the machine
 * can connect to it, so that each call carries a secret.
 *
 * @throws FileError.
 */
export async function openOwnCalls(options: OwnCallsOptions): Promise<OwnCalls> {
	const { tokenFile, handler, secret, runtime, logger } = options;
	let token = await tokenIn(tokenFile);
	const { clock } = runtime;
	const limits = ownCallLimits;
	const listener = await openListener({
		...{ address: anyPort, handler, limits, clock, logger },
		streamErrors: streamErrorsOfAgents,
	});
	const withToken: Interceptor = (next) => (request) => {
		if (token !== undefined) {
			request.header.set("authorization", `Bearer ${token}`);
		}
		return next(request);
	};
	const baseUrl = `http://${formatListenAddress(listener.address)}`;
	const { headers } = secret;
	const transport = createPlinthTransport({ baseUrl, headers, interceptors: [withToken] });
	const transportWithoutToken = createPlinthTransport({ baseUrl, headers });
	return {
		transport,
		transportWithoutToken,
		async reload() {
			token = await tokenIn(tokenFile);
		},
		async close() {
			transport.close();
			transportWithoutToken.close();
			await listener.close(0);
		},
	};
}

async function tokenIn(file: string | undefined): Promise<string | undefined> {
	if (file === undefined) {
		return undefined;
	}
	let text: string;
	try {
		text = await readFile(file, "utf8");
	} catch (cause) {
		throw new FileError(`${file} can't be read`, { cause });
	}
	const token = text.trim();
	if (token === "" || /\s/.test(token)) {
		throw new FileError(`${file} must contain one token, without spaces or line breaks`);
	}
	return token;
}
