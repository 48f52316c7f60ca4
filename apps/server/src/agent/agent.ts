import { readFile } from "node:fs/promises";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	createForwarder,
	type ForwardedMethod,
	type Forwarder,
	type ForwarderOptions,
} from "@plinth/forwarding";
import { type Clock, type Logger, type Runtime, systemRuntime } from "@plinth/runtime";
import { formatListenAddress } from "../configuration/listen-address.ts";
import { FileError } from "../configuration/located-yaml.ts";
import { Exchanges, type ExchangesOptions } from "../listener/exchanges.ts";
import { defaultListenerLimits } from "../listener/limits.ts";
import { type Listener, openListener } from "../listener/listener.ts";
import { followTls } from "../listener/tls/followed-tls.ts";
import type { Module } from "../module/define-module.ts";
import { observeControllers } from "../operations/controller-metrics.ts";
import { createMetrics } from "../operations/metrics.ts";
import { observeProcess } from "../operations/process-metrics.ts";
import { type FollowedFiles, followFiles } from "../security/followed-files.ts";
import { SharedSecrets } from "../security/shared-secrets.ts";
import { defaultStopLimitMs } from "../server-options.ts";
import type { AgentConfiguration } from "./agent-configuration.ts";
import { type AgentControllers, startAgentControllers } from "./agent-controllers.ts";
import { type AgentHandlerOptions, createAgentHandler } from "./agent-handler.ts";
import { createAgentMetrics } from "./agent-metrics.ts";
import { startCaches } from "./cache/start-caches.ts";
import type { Discovery, DiscoveryContext } from "./discovery/discovery.ts";
import { type Resolver, systemResolver } from "./discovery/resolver.ts";
import { startDiscovery } from "./discovery/start-discovery.ts";
import { forwardedMethod, knownMethod } from "./known-methods.ts";
import { type OwnCallsOptions, ownCallLimits } from "./own-calls.ts";
import { OwnSecret } from "./own-secret.ts";

/** Options of `startAgent`, in addition to the configuration. */
export interface AgentContext {
	readonly logger: Logger;
	readonly runtime?: Runtime;
	/** The modules of the configuration, whose controllers the agent runs. */
	readonly modules?: readonly Module[];
	/** Looks names up for `--discover`; that of the operating system by default. */
	readonly resolver?: Resolver;
}

/** An agent that forwards calls. */
export interface Agent {
	/** The URL that it listens on. */
	readonly address: string;
	/** Reads the TLS files and the credential again if they have changed, and looks for servers. */
	reload(): Promise<void>;
	/**
	 * Ends streams, lets calls finish for `stopLimitMs`, stops controllers at the same time, and closes all connections. New calls are
	 * refused at once.
	 */
	stop(): Promise<void>;
}

/** How long calls that were ended have to send their errors, in milliseconds. */
const closeAfterMs = 1_000;

/**
 * Starts an agent. It listens at once; `/readyz` tells when a server is ready.
 *
 * @throws ListenError; FileError about a file that can't be read; UsageError if servers don't know a type of `--cache`.
 */
export async function startAgent(
	configuration: AgentConfiguration,
	{ logger, runtime = systemRuntime, modules = [], resolver = systemResolver }: AgentContext,
): Promise<Agent> {
	const { servers, discover, http2, stopLimitMs = defaultStopLimitMs } = configuration;
	const { clock } = runtime;
	const limits = { ...defaultListenerLimits, ...configuration.limits };
	await using started = new AsyncDisposableStack();
	const tls = configuration.tls && (await followTls(configuration.tls, { clock, logger }));
	if (tls !== undefined) {
		started.defer(() => tls.close());
	}
	const secrets = new SharedSecrets();
	const credential = await followCredential(configuration, secrets, { clock, logger });
	started.defer(() => credential?.close());
	const metrics = createMetrics();
	started.defer(() => metrics.close());
	started.defer(observeProcess(metrics.meter));
	const instruments = createAgentMetrics(metrics);
	const exchanges = new Exchanges({ clock, logger, limits, onCut: instruments.cut });
	const { observer } = instruments;
	const forwarder = await openForwarder(configuration, { observer, secrets, logger, runtime });
	started.defer(() => forwarder.close());
	const context = { ...runtime, logger, resolver };
	const discovery = await discoverServers(configuration, forwarder, context);
	started.defer(() => discovery?.close());
	instruments.observe(forwarder, exchanges, discovery);
	let isStopping = false;
	const handling = {
		...{ forwarder, discovery, exchanges, metrics },
		isStopping: () => isStopping,
	};
	const own = handleOwnCalls(handling, { runtime, logger, onCut: instruments.cut });
	const caches = await startCaches({ ...own, configuration, forwarder, instruments });
	started.defer(() => caches?.close());
	const listener = await openListener({
		address: configuration.listen,
		handler: createAgentHandler({ ...handling, cache: caches?.cache }),
		...{ limits, clock, logger },
		...(tls && { tls: tls.material }),
		...(http2 && { http2 }),
	});
	tls?.follow(listener);
	instruments.observeListener(listener);
	let controllers: AgentControllers | undefined;
	started.defer(() => {
		isStopping = true;
		caches?.cache.endStreams(openAgain());
		const clients = stopForwarding(forwarder, listener, clock, stopLimitMs);
		// Their calls go on until they have stopped, and clients do not wait for them.
		return allDone([clients, controllers?.stop()]);
	});
	await caches?.checkTypes();
	const { controllersTokenFile: tokenFile } = configuration;
	controllers = await startAgentControllers({ ...own, modules, tokenFile });
	if (controllers !== undefined) {
		observeControllers(metrics.meter, controllers);
	}
	const parts = started.move();
	const address = `${tls === undefined ? "http" : "https"}://${formatListenAddress(listener.address)}`;
	logger.info({ address, servers, discover: discover?.text }, "the agent forwards calls");
	let stopped: Promise<void> | undefined;
	return {
		address,
		reload: async () => {
			const checks = [tls, credential, discovery].map((each) => each?.check());
			await Promise.all([...checks, controllers?.reload(), caches?.reload()]);
		},
		stop: () => {
			stopped ??= parts.disposeAsync();
			return stopped;
		},
	};
}

/** Creates the forwarder of an agent. @throws FileError. */
async function openForwarder(
	configuration: AgentConfiguration,
	{
		secrets,
		...context
	}: Pick<ForwarderOptions, "observer" | "logger" | "runtime"> & {
		readonly secrets: SharedSecrets;
	},
): Promise<Forwarder> {
	const ca = await serversCa(configuration);
	return createForwarder({
		...{ servers: configuration.servers, methodOf, ...context },
		...(ca !== undefined && { tls: { ca } }),
		credential: () => secrets.first,
		...(configuration.forwardingLimits && { limits: configuration.forwardingLimits }),
	});
}

/** Finds the servers of a forwarder, in addition to those that are named. */
async function discoverServers(
	{ servers, discover }: AgentConfiguration,
	forwarder: Forwarder,
	context: Omit<DiscoveryContext, "apply">,
): Promise<Discovery | undefined> {
	const named = servers.map((address) => ({ address }));
	return (
		discover &&
		startDiscovery(discover, {
			...context,
			apply: (found) => forwarder.setServers([...named, ...found]),
		})
	);
}

/** Handles the calls of an agent itself. The limits of its clients do not concern them. */
function handleOwnCalls(
	handling: AgentHandlerOptions,
	{ runtime, ...context }: Omit<ExchangesOptions, "limits" | "clock"> & { runtime: Runtime },
): Omit<OwnCallsOptions, "tokenFile" | "runtime"> & { readonly runtime: Runtime } {
	const secret = new OwnSecret();
	const { logger } = context;
	const exchanges = new Exchanges({ ...context, clock: runtime.clock, limits: ownCallLimits });
	const handler = createAgentHandler({ ...handling, exchanges, ownSecret: secret });
	return { handler, secret, runtime, logger };
}

function methodOf(path: string): ForwardedMethod | undefined {
	const method = knownMethod(path);
	return method && forwardedMethod(method);
}

/** Follows the file with the credential for the ports of servers that are for agents, if there is one. */
async function followCredential(
	{ serversCredentialFile: file }: AgentConfiguration,
	secrets: SharedSecrets,
	context: { readonly clock: Clock; readonly logger: Logger },
): Promise<FollowedFiles | undefined> {
	return file === undefined
		? undefined
		: followFiles({
				...context,
				files: { credential: file },
				apply: ({ credential }) => secrets.replace(file, credential),
			});
}

/** Waits for all, also if some reject. @throws what the first of them rejects with. */
async function allDone(promises: readonly (Promise<void> | undefined)[]): Promise<void> {
	await Promise.allSettled(promises);
	await Promise.all(promises);
}

/** Ends streams now, lets calls finish for `stopLimitMs`, and closes the port. */
async function stopForwarding(
	forwarder: Forwarder,
	listener: Listener,
	clock: Clock,
	stopLimitMs: number,
): Promise<void> {
	forwarder.endStreams(openAgain());
	const endCalls = clock.setTimer(stopLimitMs, () =>
		forwarder.endCalls(
			new ConnectError(
				"the agent is stopping, and the call took too long: it may have been executed",
				Code.Unavailable,
			),
		),
	);
	await listener.close(stopLimitMs + closeAfterMs);
	endCalls.cancel();
}

function openAgain(): ConnectError {
	return new ConnectError("the agent is stopping: open the stream again", Code.Unavailable);
}

async function serversCa({
	serversCaFile,
}: Pick<AgentConfiguration, "serversCaFile">): Promise<string | undefined> {
	if (serversCaFile === undefined) {
		return undefined;
	}
	try {
		return await readFile(serversCaFile, "utf8");
	} catch (cause) {
		throw new FileError(`${serversCaFile} can't be read`, { cause });
	}
}
