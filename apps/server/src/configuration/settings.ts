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
		takes: "<file>",
		says: "a YAML file with any of what follows; flags come first, then the environment",
		parse: text,
	}),
	listen: one("listen", {
		takes: "<host:port>",
		says: "where to listen; port 0 takes a free one",
		otherwise: "127.0.0.1:7575",
		parse: address,
	}),
	dataDir: one("dataDir", {
		takes: "<folder>",
		says: "where the sqlite storage keeps its files",
		otherwise: "./data",
		parse: text,
	}),
	storage: one("storage", {
		takes: "sqlite|memory|etcd",
		says: "memory forgets everything when it stops",
		otherwise: "sqlite",
		parse: oneOf("sqlite", "memory", "etcd"),
	}),
	memoryLimit: one("memoryLimit", {
		takes: "<size>",
		says: "what all resources may take, as 2GiB: from 80 % of it on, nothing may grow",
		otherwise: "none",
		parse: size,
	}),
	onStorageFailure: one("onStorageFailure", {
		takes: "exit|stay",
		says: "after the storage fails, exit with code 1 once limits.stopTimeout has passed, or stay up without writes, for inspection",
		otherwise: "exit",
		parse: oneOf("exit", "stay"),
	}),
	modules: list("modules", {
		flag: "module",
		takes: "<file>",
		says: "types and controllers of an application: a TypeScript or JavaScript file whose default export is defineModule({…})",
		parse: text,
	}),

	etcdEndpoints: list("etcd.endpoints", {
		takes: "<url,…>",
		says: "the members of etcd, as http://127.0.0.1:2379",
		parse: etcdEndpoint,
	}),
	etcdPrefix: one("etcd.prefix", {
		takes: "<prefix>",
		says: "what all keys begin with: servers that share it are one cluster",
		otherwise: "/plinth",
		parse: text,
	}),
	etcdCaFile: one("etcd.caFile", {
		takes: "<file>",
		says: "whose certificates to trust as etcd's, PEM",
		parse: text,
	}),
	etcdCertFile: one("etcd.certFile", {
		takes: "<file>",
		says: "the server's own certificate for etcd, PEM",
		parse: text,
	}),
	etcdKeyFile: one("etcd.keyFile", { takes: "<file>", says: "its key, PEM", parse: text }),
	etcdUser: one("etcd.user", { takes: "<name>", says: "where etcd asks who it is", parse: text }),
	etcdPasswordFile: one("etcd.passwordFile", {
		takes: "<file>",
		says: "the user's password",
		parse: text,
	}),

	tlsCertFile: one("tls.certFile", {
		takes: "<file>",
		says: "serve TLS with this certificate and its chain, PEM; read again when it changes",
		parse: text,
	}),
	tlsKeyFile: one("tls.keyFile", { takes: "<file>", says: "its key, PEM", parse: text }),
	tlsClientCaFile: one("tls.clientCaFile", {
		takes: "<file>",
		says: "mutual TLS: only clients with a certificate of these authorities, PEM",
		parse: text,
	}),

	accessFile: one("accessFile", {
		takes: "<file>",
		says: "hashed tokens, and policies for them and for JWTs, YAML; read again when it changes",
		parse: text,
	}),
	allowAnonymous: toggle(
		"allowAnonymous",
		"listen beyond this machine although everyone who reaches it has full rights",
	),
	allowedHosts: list("allowedHosts", {
		takes: "<name,…>",
		says: "host names of this server: without tokens, requests are accepted for localhost, IP addresses and these",
		parse: hostName,
	}),
	corsAllowedOrigins: list("cors.allowedOrigins", {
		takes: "<origin,…>",
		says: "web pages that may call this server, as https://console.example; other pages are refused",
		parse: webOrigin,
	}),
	jwtJwksFile: one("jwt.jwksFile", {
		takes: "<file>",
		says: "take JWTs that are signed with these keys; read again when it changes",
		parse: text,
	}),
	jwtJwksUrl: one("jwt.jwksUrl", {
		takes: "<url>",
		says: "the same, from an address",
		parse: url,
	}),
	jwtIssuer: one("jwt.issuer", { takes: "<iss>", says: "whose JWTs", parse: text }),
	jwtAudience: one("jwt.audience", { takes: "<aud>", says: "for whom they are", parse: text }),

	messageBytes: one("limits.messageBytes", {
		takes: "<size>",
		says: "the largest message of a request",
		otherwise: "4MiB",
		parse: size,
	}),
	messageFields: one("limits.messageFields", {
		takes: "<number>",
		says: "the fields of one message of a request, counted before it is decoded",
		otherwise: "250000",
		parse: count,
	}),
	connections: one("limits.connections", {
		takes: "<number>",
		says: "open connections",
		otherwise: "10000",
		parse: count,
	}),
	streamsPerConnection: one("limits.streamsPerConnection", {
		takes: "<number>",
		says: "calls at once on one HTTP/2 connection",
		otherwise: "1024",
		parse: count,
	}),
	callsInFlight: one("limits.callsInFlight", {
		takes: "<number>",
		says: "calls whose response has not been read, excluding streams and health checks",
		otherwise: "2000",
		parse: count,
	}),
	streamsInFlight: one("limits.streamsInFlight", {
		takes: "<number>",
		says: "streams at once, watches among them",
		otherwise: "20000",
		parse: count,
	}),
	watchesPerToken: one("limits.watchesPerToken", {
		takes: "<number>",
		says: "streams at once of one token's subject",
		otherwise: "5000",
		parse: count,
	}),
	callsPerSecond: one("limits.callsPerSecond", {
		takes: "<number>",
		says: "calls of one token's subject, on average",
		otherwise: "10000",
		parse: count,
	}),
	callBurst: one("limits.callBurst", {
		takes: "<number>",
		says: "calls that it may make at once after an idle period",
		otherwise: "20000",
		parse: count,
	}),
	bytesPerSecond: one("limits.bytesPerSecond", {
		takes: "<size>",
		says: "bytes read per second from one subject, on average",
		otherwise: "64MiB",
		parse: size,
	}),
	byteBurst: one("limits.byteBurst", {
		takes: "<size>",
		says: "bytes read from one subject at once after an idle period",
		otherwise: "256MiB",
		parse: size,
	}),
	headersTimeout: one("limits.headersTimeout", {
		takes: "<time>",
		says: "a connection without complete headers by then is closed",
		otherwise: "10s",
		parse: duration,
	}),
	requestTimeout: one("limits.requestTimeout", {
		takes: "<time>",
		says: "a call whose request has not arrived by then is ended",
		otherwise: "1m",
		parse: duration,
	}),
	streamIdle: one("limits.streamIdle", {
		takes: "<time>",
		says: "a client or bidi stream without a message for this long is ended",
		otherwise: "5m",
		parse: duration,
	}),
	writeStall: one("limits.writeStall", {
		takes: "<time>",
		says: "a call whose client reads nothing of its response for this long is ended",
		otherwise: "30s",
		parse: duration,
	}),
	pendingBytesPerConnection: one("limits.pendingBytesPerConnection", {
		takes: "<size>",
		says: "unread response bytes per connection, which a single response may exceed",
		otherwise: "64MiB",
		parse: size,
	}),
	pendingBytes: one("limits.pendingBytes", {
		takes: "<size>",
		says: "unread response bytes in total",
		otherwise: "256MiB",
		parse: size,
	}),
	incompleteBytes: one("limits.incompleteBytes", {
		takes: "<size>",
		says: "bytes of incomplete request messages in total, at least 4 times limits.messageBytes",
		otherwise: "256MiB",
		parse: size,
	}),
	healthWatchesPerConnection: one("limits.healthWatchesPerConnection", {
		takes: "<number>",
		says: "health watches per connection",
		otherwise: "64",
		parse: count,
	}),
	healthWatches: one("limits.healthWatches", {
		takes: "<number>",
		says: "health watches in total",
		otherwise: "1000",
		parse: count,
	}),
	stopTimeout: one("limits.stopTimeout", {
		takes: "<time>",
		says: "what running calls get to finish when the server stops",
		otherwise: "10s",
		parse: duration,
	}),

	internalListen: one("internalListen", {
		takes: "<host:port>",
		says: "where to listen for other deployments; with deployment settings only",
		parse: address,
	}),
	deploymentService: one("deployment.service", {
		takes: "<name>",
		says: "take part as a deployment of this service, as iam; the service meta keeps the registry",
		parse: label,
	}),
	deploymentRegion: one("deployment.region", {
		takes: "<name>",
		says: "in this region, as us-west2",
		parse: label,
	}),
	deploymentVersion: one("deployment.version", {
		takes: "<version>",
		says: "announce this version of the API until another one is wanted",
		otherwise: "the newest of the modules",
		parse: text,
	}),
	deploymentAddress: one("deployment.address", {
		takes: "<url>",
		says: "where other deployments reach --internal-listen, as http://10.0.0.1:7576",
		otherwise: "http:// and --internal-listen",
		parse: url,
	}),
	deploymentMetaAddresses: list("deployment.metaAddresses", {
		takes: "<url,…>",
		says: "where deployments of the meta service are reached, in the order in which to try them",
		parse: url,
	}),
	deploymentCredentialFile: one("deployment.credentialFile", {
		takes: "<file>",
		says: "the credential that all deployments share: the first line is sent, all lines are taken; read again when it changes",
		parse: text,
	}),

	logLevel: one("logLevel", {
		takes: "debug|info|warn|error",
		says: "what is logged to standard error at least",
		otherwise: "info",
		parse: oneOf("debug", "info", "warn", "error"),
	}),
	otlpEndpoint: one("otlpEndpoint", {
		takes: "<url>",
		says: "send traces to this OpenTelemetry collector, by OTLP over HTTP, as http://127.0.0.1:4318",
		parse: url,
	}),
} as const satisfies Readonly<Record<string, Setting<unknown>>>;

/** All settings in their order. */
export const allSettings: readonly AnySetting[] = Object.values(settings);
