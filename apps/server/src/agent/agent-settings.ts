import { type AnySetting, list, one } from "../configuration/setting.ts";
import { settings } from "../configuration/settings.ts";
import { count, serverAddress, size, text } from "../configuration/value-parsers.ts";
import { typeName } from "./cache/type-name.ts";
import { discoverySource } from "./discovery/discovery-source.ts";

/** The settings that only an agent has. */
export const agentSettings = {
	servers: list("servers", {
		placeholder: "<host:port,…>",
		description:
			"the servers to which calls are forwarded, such as a:7575 or https://a.example:7575",
		parse: serverAddress,
	}),
	discover: one("discover", {
		placeholder: "<dns:name[:port]|file:path>",
		description:
			"find servers in addition: at all addresses of a name, looked up again every few seconds (SRV records if it begins with _; dns:https://name for TLS), or in a file with one address per line, read again when it changes",
		parse: discoverySource,
	}),
	serversCaFile: one("serversCaFile", {
		placeholder: "<file>",
		description: "the certificate authorities to trust for servers with https (PEM)",
		defaultText: "those of Node.js",
		parse: text,
	}),
	controllersTokenFile: one("controllersTokenFile", {
		placeholder: "<file>",
		description: "a file with the token with which the controllers of modules call the servers",
		defaultText: "no token",
		parse: text,
	}),
	cache: list("cache", {
		placeholder: "<type,…>",
		description:
			"serve reads, lists and watches of these types from memory, such as music.v1.Artist; needs servers with a port for agents, and --servers-credential-file",
		parse: typeName,
	}),
	cacheTokenFile: one("cacheTokenFile", {
		placeholder: "<file>",
		description:
			"a file with the token with which caches are filled: it needs operator:read on all resources of the types",
		defaultText: "no token",
		parse: text,
	}),
	modules: list("modules", {
		flag: "module",
		placeholder: "<file>",
		description:
			"run the controllers of an application here: a TypeScript or JavaScript file whose default export is defineModule({…}); the servers have its types",
		parse: text,
	}),
	serversCredentialFile: one("serversCredentialFile", {
		placeholder: "<file>",
		description:
			"the credential for servers with --agents-credential-file: the first line is sent; read again when it changes",
		parse: text,
	}),
	calls: one("limits.calls", {
		placeholder: "<number>",
		description:
			"the maximum number of calls of clients that are forwarded at the same time, with streams",
		defaultText: "10000",
		parse: count,
	}),
	requestBytes: one("limits.requestBytes", {
		placeholder: "<size>",
		description: "the maximum size of one request message; servers may accept less",
		defaultText: "16MiB",
		parse: size,
	}),
	headerBytes: one("limits.headerBytes", {
		placeholder: "<size>",
		description:
			"the maximum size of the headers of a request with its path, with 32 bytes more for each; servers accept 16KiB",
		defaultText: "15KiB",
		parse: size,
	}),
} as const;

/** All settings of an agent, in the order of the help text. Those of a server mean the same. */
export const allAgentSettings: readonly AnySetting[] = [
	settings.config,
	settings.listen,
	agentSettings.servers,
	agentSettings.discover,
	agentSettings.serversCaFile,
	agentSettings.modules,
	agentSettings.controllersTokenFile,
	agentSettings.serversCredentialFile,
	agentSettings.cache,
	agentSettings.cacheTokenFile,
	settings.tlsCertFile,
	settings.tlsKeyFile,
	settings.tlsClientCaFile,
	settings.http2,
	settings.connections,
	settings.streamsPerConnection,
	agentSettings.calls,
	agentSettings.requestBytes,
	agentSettings.headerBytes,
	settings.headersTimeout,
	settings.requestTimeout,
	settings.streamIdle,
	settings.writeStall,
	settings.pendingBytesPerConnection,
	settings.pendingBytes,
	settings.stopTimeout,
	settings.logLevel,
];
