import { type AnySetting, list, one, type Setting, toggle } from "./setting.ts";
import {
	address,
	count,
	duration,
	etcdEndpoint,
	hostName,
	label,
	oneOf,
	size,
	text,
	url,
	webOrigin,
} from "./value-parsers.ts";

/**
 * All settings, in the order of the help text. To add one, add an entry here and its use to configuration.ts:
 * the flag, the variable, the key in the file and the help text are derived.
 */
export const settings = {
	config: one("config", {
		placeholder: "<file>",
		description: "read settings from this YAML file",
		parse: text,
	}),
	listen: one("listen", {
		placeholder: "<host:port>",
		description: "listen on this address; port 0 selects a free port",
		defaultText: "127.0.0.1:7575",
		parse: address,
	}),
	advertisedAddress: one("advertisedAddress", {
		placeholder: "<url>",
		description:
			"the URL at which the other servers of the cluster reach --listen, such as http://10.0.0.1:7575",
		defaultText: "http://<--listen>, or the host name if that is a wildcard",
		parse: url,
	}),
	dataDir: one("dataDir", {
		placeholder: "<directory>",
		description: "the directory of the sqlite storage",
		defaultText: "./data",
		parse: text,
	}),
	storage: one("storage", {
		placeholder: "sqlite|memory|etcd",
		description: "the storage; memory loses everything when the server stops",
		defaultText: "sqlite",
		parse: oneOf("sqlite", "memory", "etcd"),
	}),
	memoryLimit: one("memoryLimit", {
		placeholder: "<size>",
		description:
			"the memory that all resources may use, such as 2GiB; above 80 % of it, writes that grow the state are refused",
		defaultText: "none",
		parse: size,
	}),
	onStorageFailure: one("onStorageFailure", {
		placeholder: "exit|stay",
		description:
			"after the storage has failed: exit with code 1 after --limits-stop-timeout, or stay up without writes, for inspection",
		defaultText: "exit",
		parse: oneOf("exit", "stay"),
	}),
	http2: one("http2", {
		placeholder: "plinth|node",
		description:
			"the implementation of HTTP/2: Plinth's own, which takes less processor time, or node:http2",
		defaultText: "plinth",
		parse: oneOf("plinth", "node"),
	}),
	console: one("console", {
		placeholder: "on|off",
		description: "whether to serve the console, a web page, at /console/",
		defaultText: "on",
		parse: oneOf("on", "off"),
	}),
	modules: list("modules", {
		flag: "module",
		placeholder: "<file>",
		description:
			"load the types, controllers and services of an application: a TypeScript or JavaScript file whose default export is defineModule({…})",
		parse: text,
	}),

	etcdEndpoints: list("etcd.endpoints", {
		placeholder: "<url,…>",
		description: "the members of etcd, such as http://127.0.0.1:2379",
		parse: etcdEndpoint,
	}),
	etcdPrefix: one("etcd.prefix", {
		placeholder: "<prefix>",
		description: "the prefix of all keys; servers with the same prefix form one cluster",
		defaultText: "/plinth",
		parse: text,
	}),
	etcdCaFile: one("etcd.caFile", {
		placeholder: "<file>",
		description: "the certificate authorities to trust for etcd (PEM)",
		parse: text,
	}),
	etcdCertFile: one("etcd.certFile", {
		placeholder: "<file>",
		description: "the client certificate to present to etcd (PEM)",
		parse: text,
	}),
	etcdKeyFile: one("etcd.keyFile", {
		placeholder: "<file>",
		description: "the key of that client certificate (PEM)",
		parse: text,
	}),
	etcdUser: one("etcd.user", {
		placeholder: "<name>",
		description: "authenticate to etcd as this user",
		parse: text,
	}),
	etcdPasswordFile: one("etcd.passwordFile", {
		placeholder: "<file>",
		description: "the password of that user",
		parse: text,
	}),

	tlsCertFile: one("tls.certFile", {
		placeholder: "<file>",
		description: "serve TLS with this certificate and its chain (PEM); read again when it changes",
		parse: text,
	}),
	tlsKeyFile: one("tls.keyFile", {
		placeholder: "<file>",
		description: "the key of that certificate (PEM); read again when it changes",
		parse: text,
	}),
	tlsClientCaFile: one("tls.clientCaFile", {
		placeholder: "<file>",
		description:
			"mutual TLS: accept only clients whose certificate is issued by one of these authorities (PEM)",
		parse: text,
	}),

	accessFile: one("accessFile", {
		placeholder: "<file>",
		description:
			"hashed tokens, and policies for them and for JWTs (YAML); read again when it changes",
		parse: text,
	}),
	allowAnonymous: toggle(
		"allowAnonymous",
		"accept connections from other machines without tokens: every caller has full rights",
	),
	allowedHosts: list("allowedHosts", {
		placeholder: "<name,…>",
		description:
			"host names of this server; without tokens, only requests to localhost, IP addresses and these names are accepted",
		parse: hostName,
	}),
	corsAllowedOrigins: list("cors.allowedOrigins", {
		placeholder: "<origin,…>",
		description:
			"origins of web pages that may call this server, such as https://console.example; other origins are refused",
		parse: webOrigin,
	}),
	jwtJwksFile: one("jwt.jwksFile", {
		placeholder: "<file>",
		description:
			"accept JWTs that are signed with a key of this JSON Web Key Set; read again when it changes",
		parse: text,
	}),
	jwtJwksUrl: one("jwt.jwksUrl", {
		placeholder: "<url>",
		description: "accept JWTs that are signed with a key of the JSON Web Key Set at this URL",
		parse: url,
	}),
	jwtIssuer: one("jwt.issuer", {
		placeholder: "<iss>",
		description: "the issuer (iss) that JWTs must have",
		parse: text,
	}),
	jwtAudience: one("jwt.audience", {
		placeholder: "<aud>",
		description: "the audience (aud) that JWTs must have",
		parse: text,
	}),

	messageBytes: one("limits.messageBytes", {
		placeholder: "<size>",
		description: "the maximum size of one request message",
		defaultText: "4MiB",
		parse: size,
	}),
	messageFields: one("limits.messageFields", {
		placeholder: "<number>",
		description:
			"the maximum number of fields in one request message, counted before it is decoded",
		defaultText: "250000",
		parse: count,
	}),
	connections: one("limits.connections", {
		placeholder: "<number>",
		description: "the maximum number of open connections",
		defaultText: "10000",
		parse: count,
	}),
	streamsPerConnection: one("limits.streamsPerConnection", {
		placeholder: "<number>",
		description: "the maximum number of concurrent calls on one HTTP/2 connection",
		defaultText: "1024",
		parse: count,
	}),
	callsInFlight: one("limits.callsInFlight", {
		placeholder: "<number>",
		description:
			"the maximum number of calls whose response has not been read, excluding streams and health checks",
		defaultText: "2000",
		parse: count,
	}),
	streamsInFlight: one("limits.streamsInFlight", {
		placeholder: "<number>",
		description: "the maximum number of concurrent streams, including watches",
		defaultText: "20000",
		parse: count,
	}),
	streamsPerSubject: one("limits.streamsPerSubject", {
		placeholder: "<number>",
		description: "the maximum number of concurrent streams of a subject, over all its tokens",
		defaultText: "5000",
		parse: count,
	}),
	watchesPerSet: one("limits.watchesPerSet", {
		placeholder: "<number>",
		description: "the maximum number of watches in one set, of which each counts as a stream",
		defaultText: "100",
		parse: count,
	}),
	callsPerSecond: one("limits.callsPerSecond", {
		placeholder: "<number>",
		description: "the average number of calls per second that a subject may make",
		defaultText: "10000",
		parse: count,
	}),
	callBurst: one("limits.callBurst", {
		placeholder: "<number>",
		description: "the number of calls that a subject may make at once after an idle period",
		defaultText: "20000",
		parse: count,
	}),
	bytesPerSecond: one("limits.bytesPerSecond", {
		placeholder: "<size>",
		description: "the average number of request bytes per second that are read from a subject",
		defaultText: "64MiB",
		parse: size,
	}),
	byteBurst: one("limits.byteBurst", {
		placeholder: "<size>",
		description:
			"the number of request bytes that are read at once from a subject after an idle period",
		defaultText: "256MiB",
		parse: size,
	}),
	headersTimeout: one("limits.headersTimeout", {
		placeholder: "<duration>",
		description: "close a connection that has not sent complete headers after this time",
		defaultText: "10s",
		parse: duration,
	}),
	requestTimeout: one("limits.requestTimeout", {
		placeholder: "<duration>",
		description: "end a call whose request has not arrived after this time",
		defaultText: "1m",
		parse: duration,
	}),
	streamIdle: one("limits.streamIdle", {
		placeholder: "<duration>",
		description: "end a client or bidirectional stream without a message for this long",
		defaultText: "5m",
		parse: duration,
	}),
	writeStall: one("limits.writeStall", {
		placeholder: "<duration>",
		description:
			"end a call whose client does not read the next 64 KiB of its response within this time",
		defaultText: "30s",
		parse: duration,
	}),
	pendingBytesPerConnection: one("limits.pendingBytesPerConnection", {
		placeholder: "<size>",
		description:
			"the maximum number of unread response bytes per connection; a single response may exceed it",
		defaultText: "64MiB",
		parse: size,
	}),
	pendingBytes: one("limits.pendingBytes", {
		placeholder: "<size>",
		description: "the maximum number of unread response bytes in total",
		defaultText: "256MiB",
		parse: size,
	}),
	incompleteBytes: one("limits.incompleteBytes", {
		placeholder: "<size>",
		description:
			"the maximum number of bytes of incomplete request messages in total; raised to 4 times --limits-message-bytes if lower",
		defaultText: "256MiB",
		parse: size,
	}),
	healthWatchesPerConnection: one("limits.healthWatchesPerConnection", {
		placeholder: "<number>",
		description: "the maximum number of health watches per connection",
		defaultText: "64",
		parse: count,
	}),
	healthWatches: one("limits.healthWatches", {
		placeholder: "<number>",
		description: "the maximum number of health watches in total",
		defaultText: "1000",
		parse: count,
	}),
	stopTimeout: one("limits.stopTimeout", {
		placeholder: "<duration>",
		description: "how long running calls may continue when the server stops",
		defaultText: "10s",
		parse: duration,
	}),

	agentsListen: one("agents.listen", {
		placeholder: "<host:port>",
		description: "listen on this address for agents, and tell their clients apart by address",
		parse: address,
	}),
	agentsCredentialFile: one("agents.credentialFile", {
		placeholder: "<file>",
		description:
			"the credentials of agents, one per line: all are accepted; read again when it changes",
		parse: text,
	}),

	internalListen: one("internalListen", {
		placeholder: "<host:port>",
		description: "listen on this address for other deployments",
		parse: address,
	}),
	deploymentService: one("deployment.service", {
		placeholder: "<name>",
		description:
			"run as a deployment of this service, such as iam; the service meta holds the registry of deployments",
		parse: label,
	}),
	deploymentRegion: one("deployment.region", {
		placeholder: "<name>",
		description: "the region of the deployment, such as us-west2",
		parse: label,
	}),
	deploymentVersion: one("deployment.version", {
		placeholder: "<version>",
		description: "the API version to announce until operators request another one",
		defaultText: "the newest version of the modules",
		parse: text,
	}),
	dropVersionsInUse: toggle(
		"dropVersionsInUse",
		"start although the modules lack versions of types that other deployments reference: these can make no new references by them",
	),
	deploymentAddress: one("deployment.address", {
		placeholder: "<url>",
		description:
			"the URL under which other deployments reach --internal-listen, such as http://10.0.0.1:7576; that of a load balancer may be of several servers",
		defaultText: "http://<--internal-listen>",
		parse: url,
	}),
	deploymentMetaAddresses: list("deployment.metaAddresses", {
		placeholder: "<url,…>",
		description: "URLs of the deployments of the meta service, in the order in which to try them",
		parse: url,
	}),
	deploymentCredentialFile: one("deployment.credentialFile", {
		placeholder: "<file>",
		description:
			"the credential that all deployments share: the first line is sent, all lines are accepted; read again when it changes",
		parse: text,
	}),

	logLevel: one("logLevel", {
		placeholder: "debug|info|warn|error",
		description: "the lowest level that is logged, to standard error",
		defaultText: "info",
		parse: oneOf("debug", "info", "warn", "error"),
	}),
	otlpEndpoint: one("otlpEndpoint", {
		placeholder: "<url>",
		description:
			"send traces to this OpenTelemetry collector by OTLP over HTTP, such as http://127.0.0.1:4318",
		parse: url,
	}),
} as const satisfies Readonly<Record<string, Setting<unknown>>>;

/** All settings, in the order of the help text. */
export const allSettings: readonly AnySetting[] = Object.values(settings);
