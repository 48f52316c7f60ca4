import type { ForwardingLimits } from "@plinth/forwarding";
import type { TypeLike } from "@plinth/resource";
import { present, tlsFiles } from "../configuration/configuration.ts";
import { readConfigurationFile } from "../configuration/configuration-file.ts";
import { readEnvironment } from "../configuration/environment.ts";
import { readFlags } from "../configuration/flags.ts";
import { explained } from "../configuration/help.ts";
import type { ListenAddress } from "../configuration/listen-address.ts";
import { ResolvedConfig } from "../configuration/resolved-config.ts";
import { settings } from "../configuration/settings.ts";
import { UsageError } from "../configuration/usage-error.ts";
import type { Http2Implementation } from "../listener/http2/http2-server.ts";
import type { ListenerLimits } from "../listener/limits.ts";
import type { TlsFiles } from "../listener/tls/tls-files.ts";
import { defaultListen } from "../server-options.ts";
import { agentSettings, allAgentSettings } from "./agent-settings.ts";
import type { DiscoverySource } from "./discovery/discovery-source.ts";

/** The configuration of an agent. */
export interface AgentConfiguration {
	readonly listen: ListenAddress;
	/** The URLs of the servers; empty if they are only discovered. */
	readonly servers: readonly string[];
	/** Where servers are found in addition. */
	readonly discover?: DiscoverySource;
	/** A file with the authorities to trust for servers with `https`. */
	readonly serversCaFile?: string;
	/** Files with modules whose controllers run in the agent. */
	readonly modules?: readonly string[];
	/** A file with the token of their calls. */
	readonly controllersTokenFile?: string;
	/** A file with the credential for the ports of servers that are for agents. */
	readonly serversCredentialFile?: string;
	/** The types that are cached. */
	readonly cache?: readonly TypeLike[];
	/** A file with the token with which caches are filled. */
	readonly cacheTokenFile?: string;
	readonly tls?: TlsFiles;
	readonly http2?: Http2Implementation;
	/** Limits that differ from the defaults. */
	readonly limits?: Partial<ListenerLimits>;
	readonly forwardingLimits?: Partial<ForwardingLimits>;
	/** How long running calls may continue when the agent stops, in milliseconds. */
	readonly stopLimitMs?: number;
	readonly logLevel?: "debug" | "info" | "warn" | "error";
}

/** The output of `plinth-server agent --help`. */
export const agentHelp = `plinth-server agent: forwards calls to servers, without a storage of its own

Usage:
  plinth-server agent --servers a:7575,b:7575 [flags]
  plinth-server agent --discover dns:servers.example:7575 [flags]

Clients call an agent as they call a server: with gRPC, gRPC-Web or Connect, over HTTP/1.1 or HTTP/2, with their own
tokens. Each call goes to the ready server with the fewest calls. /healthz, /readyz and /metrics are the agent's own.

Each flag can also be set by an environment variable, such as PLINTH_SERVERS for --servers, or by a key in the file
that --config names. Flags override environment variables, and those override the file.

Flags:
${allAgentSettings.map(explained).join("")}  --help
      print this text
`;

/**
 * Reads the configuration of an agent, from the same sources as that of a server.
 *
 * @param args the arguments after `agent`.
 * @throws UsageError or FileError that names the setting which is unknown, malformed or missing, and its location.
 */
export function parseAgentCommandLine(
	args: readonly string[],
	environment: Readonly<Record<string, string | undefined>> = {},
): AgentConfiguration {
	const { source } = readFlags(args, allAgentSettings);
	const first = [source, readEnvironment(environment, allAgentSettings)];
	const file = new ResolvedConfig(first, allAgentSettings).get(settings.config);
	const sources =
		file === undefined ? first : [...first, readConfigurationFile(file, allAgentSettings)];
	const config = new ResolvedConfig(sources, allAgentSettings);
	config.check();
	const servers = config.all(agentSettings.servers);
	const discover = config.get(agentSettings.discover);
	if (servers.length === 0 && discover === undefined) {
		throw new UsageError(
			"an agent needs --servers, such as --servers a:7575,b:7575, or --discover, such as --discover dns:servers.example:7575",
		);
	}
	const cache = config.all(agentSettings.cache);
	const serversCredentialFile = config.get(agentSettings.serversCredentialFile);
	if (cache.length > 0 && serversCredentialFile === undefined) {
		throw new UsageError(
			"--cache needs --servers-credential-file, and servers that are named by their ports for agents (--agents-listen): only there do they tell the rights of tokens",
		);
	}
	return {
		listen: config.get(settings.listen) ?? defaultListen,
		servers,
		modules: config.all(agentSettings.modules),
		cache,
		limits: present({
			connections: config.get(settings.connections),
			streamsPerConnection: config.get(settings.streamsPerConnection),
			headersMs: config.get(settings.headersTimeout),
			requestMs: config.get(settings.requestTimeout),
			streamIdleMs: config.get(settings.streamIdle),
			writeStallMs: config.get(settings.writeStall),
			pendingBytesPerConnection: config.get(settings.pendingBytesPerConnection),
			pendingBytes: config.get(settings.pendingBytes),
		}),
		forwardingLimits: present({
			calls: config.get(agentSettings.calls),
			requestBytes: config.get(agentSettings.requestBytes),
			headerBytes: config.get(agentSettings.headerBytes),
		}),
		logLevel: config.get(settings.logLevel) ?? "info",
		...present({
			discover,
			serversCaFile: config.get(agentSettings.serversCaFile),
			controllersTokenFile: config.get(agentSettings.controllersTokenFile),
			cacheTokenFile: config.get(agentSettings.cacheTokenFile),
			serversCredentialFile,
			tls: tlsFiles(config),
			http2: config.get(settings.http2),
			stopLimitMs: config.get(settings.stopTimeout),
		}),
	};
}
