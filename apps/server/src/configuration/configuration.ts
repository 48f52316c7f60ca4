import type { DeploymentOptions } from "../deployment/deployment-options.ts";
import type { CallLimits } from "../limits/call-limits.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import type { TlsFiles } from "../listener/tls-files.ts";
import type { AccessOptions, JwtOptions } from "../security/access-options.ts";
import type { CorsOptions } from "../server-options.ts";
import { readConfigurationFile } from "./configuration-file.ts";
import { deploymentChoice } from "./deployment-choice.ts";
import { readEnvironment } from "./environment.ts";
import { type EtcdChoice, etcdChoice, refuseEtcdSettings, together } from "./etcd-choice.ts";
import { readFlags } from "./flags.ts";
import { Given } from "./given.ts";
import { formatListenAddress, isLoopback, type ListenAddress } from "./listen-address.ts";
import { settings } from "./settings.ts";
import { UsageError } from "./usage-error.ts";

/** What is configured. */
export interface Configuration {
	readonly listen: ListenAddress;
	readonly dataDirectory: string;
	readonly storage: "sqlite" | "memory" | "etcd";
	/** Where etcd is, if that is the storage. */
	readonly etcd?: EtcdChoice;
	/** What all resources may take, in bytes. */
	readonly memoryLimitBytes?: number;
	readonly onStorageFailure?: "exit" | "stay";
	/** Paths of module files, as given. */
	readonly modules: readonly string[];
	readonly tls?: TlsFiles;
	/** Absent: everyone has full rights. */
	readonly access?: AccessOptions;
	readonly allowAnonymous: boolean;
	readonly allowedHosts?: readonly string[];
	readonly cors?: CorsOptions;
	/** Absent: there is no other deployment. */
	readonly deployment?: DeploymentOptions;
	/** Limits that are not left as they are. */
	readonly limits: Partial<ListenerLimits>;
	readonly callLimits: Partial<CallLimits>;
	readonly stopLimitMs?: number;
	readonly logLevel: "debug" | "info" | "warn" | "error";
	readonly otlpEndpoint?: URL;
}

/** What the command line asks for. */
export type Command =
	| { readonly kind: "help" }
	| { readonly kind: "serve"; readonly configuration: Configuration };

/**
 * Reads what is configured: by flags, then by the environment, then by the file that `--config` names.
 *
 * @param args what follows the program's name.
 * @throws UsageError or FileError that names what is unknown, malformed or missing, and where it stands.
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
	const file = new Given(first).get(settings.config);
	const sources = file === undefined ? first : [...first, readConfigurationFile(file)];
	return { kind: "serve", configuration: configurationOf(new Given(sources)) };
}

function configurationOf(given: Given): Configuration {
	given.check();
	const storage = given.get(settings.storage) ?? "sqlite";
	const etcd = storage === "etcd" ? etcdChoice(given) : refuseEtcdSettings(given);
	const tls = tlsFiles(given);
	const access = accessOptions(given);
	const listen = given.get(settings.listen) ?? { host: "127.0.0.1", port: 7575 };
	const allowAnonymous = given.get(settings.allowAnonymous) ?? false;
	if (access === undefined && !allowAnonymous && !isLoopback(listen)) {
		throw new UsageError(
			`${given.nameOf(settings.listen)} ${formatListenAddress(listen)} is beyond this machine, where everyone who reaches it would have full rights: say who may do what with --access-file or --jwt-jwks-url, listen on 127.0.0.1 or [::1], or accept it with --allow-anonymous`,
		);
	}
	const allowedHosts = given.all(settings.allowedHosts);
	const allowedOrigins = given.all(settings.corsAllowedOrigins);
	return {
		listen,
		storage,
		allowAnonymous,
		dataDirectory: given.get(settings.dataDir) ?? "./data",
		modules: given.all(settings.modules),
		limits: present({
			messageBytes: given.get(settings.messageBytes),
			messageFields: given.get(settings.messageFields),
			connections: given.get(settings.connections),
			streamsPerConnection: given.get(settings.streamsPerConnection),
			headersMs: given.get(settings.headersTimeout),
			requestMs: given.get(settings.requestTimeout),
			streamIdleMs: given.get(settings.streamIdle),
			writeStallMs: given.get(settings.writeStall),
			pendingBytesPerConnection: given.get(settings.pendingBytesPerConnection),
			pendingBytes: given.get(settings.pendingBytes),
			incompleteBytes: given.get(settings.incompleteBytes),
			healthWatchesPerConnection: given.get(settings.healthWatchesPerConnection),
			healthWatches: given.get(settings.healthWatches),
		}),
		callLimits: present({
			callsInFlight: given.get(settings.callsInFlight),
			streamsInFlight: given.get(settings.streamsInFlight),
			streamsPerSubject: given.get(settings.watchesPerToken),
			callsPerSecond: given.get(settings.callsPerSecond),
			callBurst: given.get(settings.callBurst),
			bytesPerSecond: given.get(settings.bytesPerSecond),
			byteBurst: given.get(settings.byteBurst),
		}),
		logLevel: given.get(settings.logLevel) ?? "info",
		...present({
			allowedHosts: allowedHosts.length > 0 ? allowedHosts : undefined,
			cors: allowedOrigins.length > 0 ? { allowedOrigins } : undefined,
			etcd: etcd ?? undefined,
			tls,
			access,
			deployment: deploymentChoice(given),
			memoryLimitBytes: given.get(settings.memoryLimit),
			onStorageFailure: given.get(settings.onStorageFailure),
			stopLimitMs: given.get(settings.stopTimeout),
			otlpEndpoint: given.get(settings.otlpEndpoint),
		}),
	};
}

function tlsFiles(given: Given): TlsFiles | undefined {
	together(given, settings.tlsCertFile, settings.tlsKeyFile);
	const certFile = given.get(settings.tlsCertFile);
	const keyFile = given.get(settings.tlsKeyFile);
	const clientCaFile = given.get(settings.tlsClientCaFile);
	if (certFile === undefined || keyFile === undefined) {
		if (clientCaFile !== undefined) {
			throw new UsageError(
				`${given.nameOf(settings.tlsClientCaFile)} needs --tls-cert-file and --tls-key-file`,
			);
		}
		return undefined;
	}
	return { certFile, keyFile, ...present({ clientCaFile }) };
}

function accessOptions(given: Given): AccessOptions | undefined {
	const file = given.get(settings.accessFile);
	const jwt = jwtOptions(given);
	if (jwt !== undefined && file === undefined) {
		throw new UsageError("JWTs need --access-file, which says what their bearers may do");
	}
	return file === undefined ? undefined : { file, ...present({ jwt }) };
}

function jwtOptions(given: Given): JwtOptions | undefined {
	const file = given.get(settings.jwtJwksFile);
	const address = given.get(settings.jwtJwksUrl);
	const issuer = given.get(settings.jwtIssuer);
	const audience = given.get(settings.jwtAudience);
	if (file === undefined && address === undefined) {
		const useless = [settings.jwtIssuer, settings.jwtAudience].find((each) => given.has(each));
		if (useless !== undefined) {
			throw new UsageError(`${given.nameOf(useless)} needs --jwt-jwks-file or --jwt-jwks-url`);
		}
		return undefined;
	}
	if (file !== undefined && address !== undefined) {
		throw new UsageError(
			`${given.nameOf(settings.jwtJwksFile)} and ${given.nameOf(settings.jwtJwksUrl)}: give one of them`,
		);
	}
	if (issuer === undefined || audience === undefined) {
		throw new UsageError(
			"JWTs need --jwt-issuer and --jwt-audience: without them, those for others would be taken",
		);
	}
	return { issuer, audience, keys: file !== undefined ? { file } : { url: address ?? never() } };
}

function never(): never {
	throw new Error("one of both is there");
}

/** The object without what is undefined. */
function present<Value extends object>(
	value: Value,
): { [Key in keyof Value]?: Exclude<Value[Key], undefined> } {
	return Object.fromEntries(Object.entries(value).filter(([, each]) => each !== undefined)) as {
		[Key in keyof Value]?: Exclude<Value[Key], undefined>;
	};
}
