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
 * All that can be configured, in the order of the help. A new setting is a line here, and its use in
 * configuration.ts: flags, environment, file and help follow.
 */
export const settings = {
	config: one("config", {
		placeholder: "<file>",
		description: "a YAML file with any of what follows; flags come first, then the environment",
		parse: text,
	}),
	listen: one("listen", {
		placeholder: "<host:port>",
		description: "where to listen; port 0 takes a free one",
		defaultText: "127.0.0.1:7575",
		parse: address,
	}),
	dataDir: one("dataDir", {
		placeholder: "<folder>",
		description: "where the sqlite storage keeps its files",
		defaultText: "./data",
		parse: text,
	}),
	storage: one("storage", {
		placeholder: "sqlite|memory|etcd",
		description: "memory forgets everything when it stops",
		defaultText: "sqlite",
		parse: oneOf("sqlite", "memory", "etcd"),
	}),
	memoryLimit: one("memoryLimit", {
		placeholder: "<size>",
		description: "what all resources may take, as 2GiB: from 80 % of it on, nothing may grow",
		defaultText: "none",
		parse: size,
	}),
	onStorageFailure: one("onStorageFailure", {
		placeholder: "exit|stay",
		description:
			"after the storage fails, exit with code 1 once limits.stopTimeout has passed, or stay up without writes, for inspection",
		defaultText: "exit",
		parse: oneOf("exit", "stay"),
	}),
	modules: list("modules", {
		flag: "module",
		placeholder: "<file>",
		description:
			"types and controllers of an application: a TypeScript or JavaScript file whose default export is defineModule({…})",
		parse: text,
	}),

	etcdEndpoints: list("etcd.endpoints", {
		placeholder: "<url,…>",
		description: "the members of etcd, as http://127.0.0.1:2379",
		parse: etcdEndpoint,
	}),
	etcdPrefix: one("etcd.prefix", {
		placeholder: "<prefix>",
		description: "what all keys begin with: servers that share it are one cluster",
		defaultText: "/plinth",
		parse: text,
	}),
	etcdCaFile: one("etcd.caFile", {
		placeholder: "<file>",
		description: "whose certificates to trust as etcd's, PEM",
		parse: text,
	}),
	etcdCertFile: one("etcd.certFile", {
		placeholder: "<file>",
		description: "the server's own certificate for etcd, PEM",
		parse: text,
	}),
	etcdKeyFile: one("etcd.keyFile", {
		placeholder: "<file>",
		description: "its key, PEM",
		parse: text,
	}),
	etcdUser: one("etcd.user", {
		placeholder: "<name>",
		description: "where etcd asks who it is",
		parse: text,
	}),
	etcdPasswordFile: one("etcd.passwordFile", {
		placeholder: "<file>",
		description: "the user's password",
		parse: text,
	}),

	tlsCertFile: one("tls.certFile", {
		placeholder: "<file>",
		description: "serve TLS with this certificate and its chain, PEM; read again when it changes",
		parse: text,
	}),
	tlsKeyFile: one("tls.keyFile", {
		placeholder: "<file>",
		description: "its key, PEM",
		parse: text,
	}),
	tlsClientCaFile: one("tls.clientCaFile", {
		placeholder: "<file>",
		description: "mutual TLS: only clients with a certificate of these authorities, PEM",
		parse: text,
	}),

	accessFile: one("accessFile", {
		placeholder: "<file>",
		description:
			"hashed tokens, and policies for them and for JWTs, YAML; read again when it changes",
		parse: text,
	}),
	allowAnonymous: toggle(
		"allowAnonymous",
		"listen beyond this machine although everyone who reaches it has full rights",
	),
	allowedHosts: list("allowedHosts", {
		placeholder: "<name,…>",
		description:
			"host names of this server: without tokens, requests are accepted for localhost, IP addresses and these",
		parse: hostName,
	}),
	corsAllowedOrigins: list("cors.allowedOrigins", {
		placeholder: "<origin,…>",
		description:
			"web pages that may call this server, as https://console.example; other pages are refused",
		parse: webOrigin,
	}),
	jwtJwksFile: one("jwt.jwksFile", {
		placeholder: "<file>",
		description: "take JWTs that are signed with these keys; read again when it changes",
		parse: text,
	}),
	jwtJwksUrl: one("jwt.jwksUrl", {
		placeholder: "<url>",
		description: "the same, from an address",
		parse: url,
	}),
	jwtIssuer: one("jwt.issuer", { placeholder: "<iss>", description: "whose JWTs", parse: text }),
	jwtAudience: one("jwt.audience", {
		placeholder: "<aud>",
		description: "for whom they are",
		parse: text,
	}),

	messageBytes: one("limits.messageBytes", {
		placeholder: "<size>",
		description: "the largest message of a request",
		defaultText: "4MiB",
		parse: size,
	}),
	messageFields: one("limits.messageFields", {
		placeholder: "<number>",
		description: "the fields of one message of a request, counted before it is decoded",
		defaultText: "250000",
		parse: count,
	}),
	connections: one("limits.connections", {
		placeholder: "<number>",
		description: "open connections",
		defaultText: "10000",
		parse: count,
	}),
	streamsPerConnection: one("limits.streamsPerConnection", {
		placeholder: "<number>",
		description: "calls at once on one HTTP/2 connection",
		defaultText: "1024",
		parse: count,
	}),
	callsInFlight: one("limits.callsInFlight", {
		placeholder: "<number>",
		description: "calls whose response has not been read, excluding streams and health checks",
		defaultText: "2000",
		parse: count,
	}),
	streamsInFlight: one("limits.streamsInFlight", {
		placeholder: "<number>",
		description: "streams at once, watches among them",
		defaultText: "20000",
		parse: count,
	}),
	watchesPerToken: one("limits.watchesPerToken", {
		placeholder: "<number>",
		description: "streams at once of one token's subject",
		defaultText: "5000",
		parse: count,
	}),
	callsPerSecond: one("limits.callsPerSecond", {
		placeholder: "<number>",
		description: "calls of one token's subject, on average",
		defaultText: "10000",
		parse: count,
	}),
	callBurst: one("limits.callBurst", {
		placeholder: "<number>",
		description: "calls that it may make at once after an idle period",
		defaultText: "20000",
		parse: count,
	}),
	bytesPerSecond: one("limits.bytesPerSecond", {
		placeholder: "<size>",
		description: "bytes read per second from one subject, on average",
		defaultText: "64MiB",
		parse: size,
	}),
	byteBurst: one("limits.byteBurst", {
		placeholder: "<size>",
		description: "bytes read from one subject at once after an idle period",
		defaultText: "256MiB",
		parse: size,
	}),
	headersTimeout: one("limits.headersTimeout", {
		placeholder: "<time>",
		description: "a connection without complete headers by then is closed",
		defaultText: "10s",
		parse: duration,
	}),
	requestTimeout: one("limits.requestTimeout", {
		placeholder: "<time>",
		description: "a call whose request has not arrived by then is ended",
		defaultText: "1m",
		parse: duration,
	}),
	streamIdle: one("limits.streamIdle", {
		placeholder: "<time>",
		description: "a client or bidi stream without a message for this long is ended",
		defaultText: "5m",
		parse: duration,
	}),
	writeStall: one("limits.writeStall", {
		placeholder: "<time>",
		description: "a call whose client reads nothing of its response for this long is ended",
		defaultText: "30s",
		parse: duration,
	}),
	pendingBytesPerConnection: one("limits.pendingBytesPerConnection", {
		placeholder: "<size>",
		description: "unread response bytes per connection, which a single response may exceed",
		defaultText: "64MiB",
		parse: size,
	}),
	pendingBytes: one("limits.pendingBytes", {
		placeholder: "<size>",
		description: "unread response bytes in total",
		defaultText: "256MiB",
		parse: size,
	}),
	incompleteBytes: one("limits.incompleteBytes", {
		placeholder: "<size>",
		description:
			"bytes of incomplete request messages in total, at least 4 times limits.messageBytes",
		defaultText: "256MiB",
		parse: size,
	}),
	healthWatchesPerConnection: one("limits.healthWatchesPerConnection", {
		placeholder: "<number>",
		description: "health watches per connection",
		defaultText: "64",
		parse: count,
	}),
	healthWatches: one("limits.healthWatches", {
		placeholder: "<number>",
		description: "health watches in total",
		defaultText: "1000",
		parse: count,
	}),
	stopTimeout: one("limits.stopTimeout", {
		placeholder: "<time>",
		description: "what running calls get to finish when the server stops",
		defaultText: "10s",
		parse: duration,
	}),

	internalListen: one("internalListen", {
		placeholder: "<host:port>",
		description: "where to listen for other deployments; with deployment settings only",
		parse: address,
	}),
	deploymentService: one("deployment.service", {
		placeholder: "<name>",
		description:
			"take part as a deployment of this service, as iam; the service meta keeps the registry",
		parse: label,
	}),
	deploymentRegion: one("deployment.region", {
		placeholder: "<name>",
		description: "in this region, as us-west2",
		parse: label,
	}),
	deploymentVersion: one("deployment.version", {
		placeholder: "<version>",
		description: "announce this version of the API until another one is wanted",
		defaultText: "the newest of the modules",
		parse: text,
	}),
	deploymentAddress: one("deployment.address", {
		placeholder: "<url>",
		description: "where other deployments reach --internal-listen, as http://10.0.0.1:7576",
		defaultText: "http:// and --internal-listen",
		parse: url,
	}),
	deploymentMetaAddresses: list("deployment.metaAddresses", {
		placeholder: "<url,…>",
		description:
			"where deployments of the meta service are reached, in the order in which to try them",
		parse: url,
	}),
	deploymentCredentialFile: one("deployment.credentialFile", {
		placeholder: "<file>",
		description:
			"the credential that all deployments share: the first line is sent, all lines are taken; read again when it changes",
		parse: text,
	}),

	logLevel: one("logLevel", {
		placeholder: "debug|info|warn|error",
		description: "what is logged to standard error at least",
		defaultText: "info",
		parse: oneOf("debug", "info", "warn", "error"),
	}),
	otlpEndpoint: one("otlpEndpoint", {
		placeholder: "<url>",
		description:
			"send traces to this OpenTelemetry collector, by OTLP over HTTP, as http://127.0.0.1:4318",
		parse: url,
	}),
} as const satisfies Readonly<Record<string, Setting<unknown>>>;

/** All settings in their order. */
export const allSettings: readonly AnySetting[] = Object.values(settings);
