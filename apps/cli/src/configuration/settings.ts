import { readFileSync } from "node:fs";
import type { Place } from "@plinth/documents";
import { suggestion } from "@plinth/documents/suggest";
import type { Endpoint } from "../api/connection.ts";
import { usageFailure } from "../failure.ts";
import { readFailure } from "../read-failure.ts";
import type { Configuration, Context } from "./configuration.ts";
import { parseDuration } from "./duration.ts";

/** The options of all commands. */
export interface GlobalFlags {
	readonly config?: string;
	readonly context?: string;
	readonly server?: string;
	readonly token?: string;
	readonly tokenFile?: string;
	readonly caFile?: string;
	readonly certificateFile?: string;
	readonly keyFile?: string;
	readonly partition?: string;
	readonly namespace?: string;
	readonly requestTimeout?: string;
}

/** The resolved settings of a command. */
export interface Settings {
	readonly endpoint: Endpoint;
	readonly place: Place;
}

const defaultServer = "http://127.0.0.1:7575";

/**
 * Resolves the settings: flags take precedence over the environment, and the environment over the context. The
 * token of a context is only sent to the server of that context.
 */
export function resolveSettings(
	flags: GlobalFlags,
	env: Readonly<Record<string, string | undefined>>,
	configuration: Configuration,
): Settings {
	const context = contextOf(flags, env, configuration);
	const server = checkServer(
		flags.server ?? (env.PLINTH_SERVER || undefined) ?? context?.server ?? defaultServer,
	);
	const own = context !== undefined && checkServer(context.server) === server ? context : undefined;
	return {
		endpoint: {
			server,
			token: tokenOf(flags, env) ?? own?.token,
			caFile: flags.caFile ?? env.PLINTH_CA_FILE ?? own?.ca_file,
			certificateFile:
				flags.certificateFile ?? env.PLINTH_CERTIFICATE_FILE ?? own?.certificate_file,
			keyFile: flags.keyFile ?? env.PLINTH_KEY_FILE ?? own?.key_file,
			// As in kubectl, 0 is no timeout.
			requestTimeoutMs:
				parseDuration("--request-timeout", flags.requestTimeout ?? "30s") || undefined,
		},
		place: {
			partition: flags.partition ?? env.PLINTH_PARTITION ?? context?.partition ?? "default",
			namespace: flags.namespace ?? env.PLINTH_NAMESPACE ?? context?.namespace ?? "default",
		},
	};
}

function contextOf(
	flags: GlobalFlags,
	env: Readonly<Record<string, string | undefined>>,
	{ contexts, current }: Configuration,
): Context | undefined {
	const name = flags.context ?? (env.PLINTH_CONTEXT || current);
	return name === undefined ? undefined : findContext(contexts, name);
}

/** The context with that name. @throws Failure if it does not exist. */
export function findContext(contexts: Configuration["contexts"], name: string): Context {
	const context = Object.hasOwn(contexts, name) ? contexts[name] : undefined;
	if (context === undefined) {
		const unknown = unknownContext(contexts, name);
		const end = unknown.endsWith("?") ? "" : ".";
		throw usageFailure(`${unknown}${end} Create it with: plinth context set ${name} --server URL`);
	}
	return context;
}

/** @throws Failure if no context has that name. */
export function assertContext(contexts: Configuration["contexts"], name: string): void {
	if (!Object.hasOwn(contexts, name)) {
		throw usageFailure(unknownContext(contexts, name));
	}
}

function unknownContext(contexts: Configuration["contexts"], name: string): string {
	return `unknown context ${name}${suggestion(name, Object.keys(contexts))}`;
}

/** The normalized address of a server. @throws Failure if it is invalid. */
export function checkServer(server: string): string {
	const withScheme = /^[a-z]+:\/\//i.test(server) ? server : `http://${server}`;
	const url = URL.canParse(withScheme) ? new URL(withScheme) : undefined;
	if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
		throw usageFailure(`${server} is not a server address: write it as ${defaultServer}`);
	}
	if (url.username !== "" || url.password !== "") {
		throw usageFailure("a server address can't contain a user: set a token with --token-file");
	}
	return url.href.replace(/\/$/, "");
}

/** The token from the flags or the environment. */
export function tokenOf(
	flags: Pick<GlobalFlags, "token" | "tokenFile">,
	env: Readonly<Record<string, string | undefined>>,
): string | undefined {
	if (flags.token !== undefined && flags.tokenFile !== undefined) {
		throw usageFailure("--token and --token-file can't be used together");
	}
	if (flags.tokenFile !== undefined) {
		return checkToken(readToken(flags.tokenFile));
	}
	const token = flags.token ?? (env.PLINTH_TOKEN || undefined);
	return token === undefined ? undefined : checkToken(token);
}

function readToken(file: string): string {
	try {
		return readFileSync(file, "utf8").trim();
	} catch (cause) {
		throw usageFailure(`can't read the token from ${file}: ${readFailure(cause)}`, { cause });
	}
}

function checkToken(token: string): string {
	if (!/^[!-~]+$/.test(token)) {
		throw usageFailure("the token is empty, or has characters that are not allowed in a header");
	}
	return token;
}
