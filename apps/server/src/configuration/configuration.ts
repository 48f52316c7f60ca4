import type { AgentsOptions } from "../agents-listener/agents-options.ts";
import type { DeploymentOptions } from "../deployment/deployment-options.ts";
import type { CallLimits } from "../limits/call-limits.ts";
import type { Http2Implementation } from "../listener/http2/http2-server.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import type { TlsFiles } from "../listener/tls/tls-files.ts";
import type { AccessOptions, JwtOptions } from "../security/access-options.ts";
import type { CorsOptions } from "../server-options.ts";
import { readConfigurationFile } from "./configuration-file.ts";
import { deploymentSettings } from "./deployment-settings.ts";
import { readEnvironment } from "./environment.ts";
import {
	type EtcdSettings,
	etcdSettings,
	refuseEtcdSettings,
	requireBoth,
} from "./etcd-settings.ts";
import { readFlags } from "./flags.ts";
import { formatListenAddress, isLoopback, type ListenAddress } from "./listen-address.ts";
import { ResolvedConfig } from "./resolved-config.ts";
import { settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** The configuration of a server process. */
export interface Configuration {
	readonly listen: ListenAddress;
	/** The URL for the other servers of the cluster. */
	readonly advertisedAddress?: string;
	readonly dataDirectory: string;
	readonly storage: "sqlite" | "memory" | "etcd";
	/** Present if the storage is etcd. */
	readonly etcd?: EtcdSettings;
	/** The limit on the memory of all resources, in bytes. */
	readonly memoryLimitBytes?: number;
	readonly onStorageFailure?: "exit" | "stay";
	/** What serves HTTP/2. */
	readonly http2?: Http2Implementation;
	/** Whether to serve the console. */
	readonly console: boolean;
	/** Paths of module files, as configured. */
	readonly modules: readonly string[];
	readonly tls?: TlsFiles;
	/** If absent, every caller has full rights. */
	readonly access?: AccessOptions;
	readonly allowAnonymous: boolean;
	readonly allowedHosts?: readonly string[];
	readonly cors?: CorsOptions;
	/** If absent, there is no port for agents. */
	readonly agents?: AgentsOptions;
	/** If absent, there are no other deployments. */
	readonly deployment?: DeploymentOptions;
	/** Limits that differ from the defaults. */
	readonly limits: Partial<ListenerLimits>;
	readonly callLimits: Partial<CallLimits>;
	readonly stopLimitMs?: number;
	readonly logLevel: "debug" | "info" | "warn" | "error";
	readonly otlpEndpoint?: URL;
}

/** The command on the command line. */
export type Command =
	| { readonly kind: "help" }
	| { readonly kind: "serve"; readonly configuration: Configuration };

/**
 * Reads the configuration from flags, the environment and the file that `--config` names, in that order of
 * precedence.
 *
 * @param args the arguments of the program.
 * @throws UsageError or FileError that names the setting which is unknown, malformed or missing, and its location.
 */
export function parseCommandLine(
	args: readonly string[],
	environment: Readonly<Record<string, string | undefined>> = {},
): Command {
	const flags = readFlags(args);
	if (flags.help) {
		return { kind: "help" };
	}
	const first = [flags.source, readEnvironment(environment)];
	const file = new ResolvedConfig(first).get(settings.config);
	const sources = file === undefined ? first : [...first, readConfigurationFile(file)];
	return { kind: "serve", configuration: configurationOf(new ResolvedConfig(sources)) };
}

function configurationOf(config: ResolvedConfig): Configuration {
	config.check();
	const storage = config.get(settings.storage) ?? "sqlite";
	const etcd = storage === "etcd" ? etcdSettings(config) : refuseEtcdSettings(config);
	const tls = tlsFiles(config);
	const access = accessOptions(config);
	const listen = config.get(settings.listen) ?? { host: "127.0.0.1", port: 7575 };
	const allowAnonymous = config.get(settings.allowAnonymous) ?? false;
	const agents = agentsOptions(config);
	if (access === undefined && !allowAnonymous) {
		refuseExposed(config.nameOf(settings.listen), listen);
		if (agents !== undefined) {
			refuseExposed(config.nameOf(settings.agentsListen), agents.listen);
		}
	}
	const allowedHosts = config.all(settings.allowedHosts);
	const allowedOrigins = config.all(settings.corsAllowedOrigins);
	return {
		listen,
		storage,
		allowAnonymous,
		console: config.get(settings.console) !== "off",
		dataDirectory: config.get(settings.dataDir) ?? "./data",
		modules: config.all(settings.modules),
		limits: present({
			messageBytes: config.get(settings.messageBytes),
			messageFields: config.get(settings.messageFields),
			connections: config.get(settings.connections),
			streamsPerConnection: config.get(settings.streamsPerConnection),
			headersMs: config.get(settings.headersTimeout),
			requestMs: config.get(settings.requestTimeout),
			streamIdleMs: config.get(settings.streamIdle),
			writeStallMs: config.get(settings.writeStall),
			pendingBytesPerConnection: config.get(settings.pendingBytesPerConnection),
			pendingBytes: config.get(settings.pendingBytes),
			incompleteBytes: config.get(settings.incompleteBytes),
			healthWatchesPerConnection: config.get(settings.healthWatchesPerConnection),
			healthWatches: config.get(settings.healthWatches),
		}),
		callLimits: present({
			callsInFlight: config.get(settings.callsInFlight),
			streamsInFlight: config.get(settings.streamsInFlight),
			streamsPerSubject: config.get(settings.streamsPerSubject),
			watchesPerSet: config.get(settings.watchesPerSet),
			callsPerSecond: config.get(settings.callsPerSecond),
			callBurst: config.get(settings.callBurst),
			bytesPerSecond: config.get(settings.bytesPerSecond),
			byteBurst: config.get(settings.byteBurst),
		}),
		logLevel: config.get(settings.logLevel) ?? "info",
		...present({
			advertisedAddress: config.get(settings.advertisedAddress)?.origin,
			allowedHosts: allowedHosts.length > 0 ? allowedHosts : undefined,
			cors: allowedOrigins.length > 0 ? { allowedOrigins } : undefined,
			etcd: etcd ?? undefined,
			tls,
			access,
			agents,
			deployment: deploymentSettings(config),
			memoryLimitBytes: config.get(settings.memoryLimit),
			onStorageFailure: config.get(settings.onStorageFailure),
			http2: config.get(settings.http2),
			stopLimitMs: config.get(settings.stopTimeout),
			otlpEndpoint: config.get(settings.otlpEndpoint),
		}),
	};
}

/** @throws UsageError if other machines reach an address. */
function refuseExposed(setting: string, listen: ListenAddress): void {
	if (!isLoopback(listen)) {
		throw new UsageError(
			`${setting} ${formatListenAddress(listen)} is reachable from other machines, and every caller would have full rights: restrict access with --access-file, listen on 127.0.0.1 or [::1], or accept this with --allow-anonymous`,
		);
	}
}

function agentsOptions(config: ResolvedConfig): AgentsOptions | undefined {
	requireBoth(config, settings.agentsListen, settings.agentsCredentialFile);
	const listen = config.get(settings.agentsListen);
	const credentialFile = config.get(settings.agentsCredentialFile);
	return listen && credentialFile !== undefined ? { listen, credentialFile } : undefined;
}

/** The TLS files of a listener. @throws UsageError if some are missing. */
export function tlsFiles(config: ResolvedConfig): TlsFiles | undefined {
	requireBoth(config, settings.tlsCertFile, settings.tlsKeyFile);
	const certFile = config.get(settings.tlsCertFile);
	const keyFile = config.get(settings.tlsKeyFile);
	const clientCaFile = config.get(settings.tlsClientCaFile);
	if (certFile === undefined || keyFile === undefined) {
		if (clientCaFile !== undefined) {
			throw new UsageError(
				`${config.nameOf(settings.tlsClientCaFile)} needs --tls-cert-file and --tls-key-file`,
			);
		}
		return undefined;
	}
	return { certFile, keyFile, ...present({ clientCaFile }) };
}

function accessOptions(config: ResolvedConfig): AccessOptions | undefined {
	const file = config.get(settings.accessFile);
	const jwt = jwtOptions(config);
	if (jwt !== undefined && file === undefined) {
		throw new UsageError("JWTs need --access-file, which grants rights to their bearers");
	}
	return file === undefined ? undefined : { file, ...present({ jwt }) };
}

function jwtOptions(config: ResolvedConfig): JwtOptions | undefined {
	const file = config.get(settings.jwtJwksFile);
	const address = config.get(settings.jwtJwksUrl);
	const issuer = config.get(settings.jwtIssuer);
	const audience = config.get(settings.jwtAudience);
	if (file === undefined && address === undefined) {
		const useless = [settings.jwtIssuer, settings.jwtAudience].find((each) => config.has(each));
		if (useless !== undefined) {
			throw new UsageError(`${config.nameOf(useless)} needs --jwt-jwks-file or --jwt-jwks-url`);
		}
		return undefined;
	}
	if (file !== undefined && address !== undefined) {
		throw new UsageError(
			`${config.nameOf(settings.jwtJwksFile)} and ${config.nameOf(settings.jwtJwksUrl)} can't be used together: set one of them`,
		);
	}
	if (issuer === undefined || audience === undefined) {
		throw new UsageError(
			"JWTs need --jwt-issuer and --jwt-audience: without them, tokens for other services would be accepted",
		);
	}
	return { issuer, audience, keys: file !== undefined ? { file } : { url: address ?? never() } };
}

function never(): never {
	throw new Error("either the file or the URL is set");
}

/** The object without properties that are undefined. */
export function present<Value extends object>(
	value: Value,
): { [Key in keyof Value]?: Exclude<Value[Key], undefined> } {
	return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as {
		[Key in keyof Value]?: Exclude<Value[Key], undefined>;
	};
}
