import { randomBytes } from "node:crypto";
import { type CallOptions, Code, ConnectError, createClient } from "@connectrpc/connect";
import type { ReportCall, ReportQuestion, ServerReport } from "@plinth/controller";
import { ClusterService } from "@plinth/proto/gen/plinth/cluster/v1/cluster_service_pb.js";
import { consistencyHeader, tokenOf } from "@plinth/resource-service";
import { type Logger, linkedSignal, unlessAborted } from "@plinth/runtime";
import type { ServerDirectory, ServerRecord } from "@plinth/storage";
import { type Caller, CallerTurns } from "./caller-turns.ts";
import { challengeBytes, isProof } from "./identity-proof.ts";
import { sealedTokenHeader, sealToken } from "./sealed-token.ts";
import { ServerConnections, type ServerConnectionsOptions } from "./server-connections.ts";

/** Options of `OtherServers`. */
export interface OtherServersOptions extends ServerConnectionsOptions {
	readonly directory: Pick<ServerDirectory, "list">;
	readonly logger: Logger;
	/** Who makes a call. */
	readonly callerOf: (call: ReportCall) => Caller;
}

/** How long the directory, and then all servers together, have to respond, in milliseconds. */
const limitsMs = { directory: 500, servers: 1_500 } as const;

/** For how many calls of one caller the others are asked at once: each call is as many questions as there are servers. */
const callConcurrency = 8;

/** A longer message from a server that has proven nothing yet is not read. In bytes. */
const maxProofBytes = 1_024;

/** Headers of a call that its questions to other servers carry as they are: which state is read. */
const forwarded = [consistencyHeader];

const tooMany = "was not asked: you make too many calls at once";
const inTime = "did not respond in time";
const unreachable = "can't be reached";
const another = "is not the server that responds at its address";

/**
 * Asks the other servers of a cluster on behalf of a caller, whose rights each of them checks. The caller's token is sent
 * only on a connection on which a server has proven to be the one that the directory names, since an address may belong to
 * another cluster by now, and sealed: a process that passes on the proof and the question of a server can't read it.
 */
export class OtherServers {
	readonly #options: OtherServersOptions;
	readonly #connections: ServerConnections;
	readonly #turns = new CallerTurns(callConcurrency);
	/** What the directory contained last: its storage may be unreachable. */
	#known: readonly ServerRecord[] = [];

	constructor(options: OtherServersOptions) {
		this.#options = options;
		this.#connections = new ServerConnections(options);
	}

	/** Asks all live servers but that with the ID `own`, at the same time. */
	async ask<T>(
		own: string,
		call: ReportCall,
		question: ReportQuestion<T>,
	): Promise<readonly ServerReport<T>[]> {
		// A caller with little time gets a response that lacks some servers, rather than none.
		const leftMs = (call.timeoutMs() ?? Number.POSITIVE_INFINITY) / 2;
		using listing = this.#within(Math.min(limitsMs.directory, leftMs / 4), call.signal);
		const servers = await this.#list(listing.signal);
		using responding = this.#within(Math.min(limitsMs.servers, leftMs), call.signal);
		const { signal } = responding;
		const others = servers.filter(({ id }) => id !== own);
		using waiting = this.#within(Math.min(limitsMs.servers, leftMs) / 2, signal);
		const caller = this.#options.callerOf(call);
		const turn = await this.#turns.take(caller, waiting.signal).catch(() => {});
		if (turn === undefined) {
			return others.map((server) => ({ server, response: undefined, missing: tooMany }));
		}
		using _ = turn;
		// Awaited, since the time ends with this function.
		return await Promise.all(
			others.map(async (server) => {
				const result = await this.#askOne(server, call, question, signal);
				return { server, ...result };
			}),
		);
	}

	/** Closes all connections. */
	close(): void {
		this.#connections.keepOnly(new Set());
	}

	async #list(signal: AbortSignal): Promise<readonly ServerRecord[]> {
		const { directory, logger } = this.#options;
		try {
			this.#known = await unlessAborted(directory.list(signal), signal);
			this.#connections.keepOnly(new Set(this.#known.map(({ address }) => address)));
		} catch (error) {
			logger.debug({ err: error }, "could not list the servers of the cluster");
		}
		return this.#known;
	}

	async #askOne<T>(
		server: ServerRecord,
		call: ReportCall,
		question: ReportQuestion<T>,
		signal: AbortSignal,
	): Promise<Omit<ServerReport<T>, "server">> {
		try {
			const response = await unlessAborted(this.#call(server, call, question, signal), signal);
			return { response };
		} catch (error) {
			const { name, address } = server;
			this.#options.logger.debug({ err: error, server: name, address }, "a server did not report");
			return { response: undefined, missing: signal.aborted ? inTime : reasonOf(error) };
		}
	}

	async #call<T>(
		server: ServerRecord,
		call: ReportCall,
		question: ReportQuestion<T>,
		signal: AbortSignal,
	): Promise<T | undefined> {
		// Another server may listen at the address by the next connection.
		const transport = this.#connections.open(server.address).onOneConnection();
		const challenge = randomBytes(challengeBytes);
		const { proof } = await createClient(ClusterService, transport.reading(maxProofBytes)).identify(
			{ id: server.id, challenge },
			{ signal },
		);
		if (!isProof(proof, server.secret, challenge)) {
			throw new AnotherServer(another);
		}
		const options: CallOptions = { signal, headers: headersOf(call, server) };
		return await question(transport, options);
	}

	/** A signal that aborts after a time, or with another signal. */
	#within(limitMs: number, signal: AbortSignal): Disposable & { readonly signal: AbortSignal } {
		const end = new AbortController();
		const timer = this.#options.clock.setTimer(limitMs, () => end.abort(new Error(inTime)));
		const linked = linkedSignal(end.signal, signal);
		return {
			signal: linked.signal,
			[Symbol.dispose]: () => {
				timer.cancel();
				linked[Symbol.dispose]();
			},
		};
	}
}

/** Another server responds at the address of a server. */
class AnotherServer extends Error {
	override readonly name = "AnotherServer";
}

function headersOf(call: ReportCall, { secret }: ServerRecord): Record<string, string> {
	const token = tokenIn(call);
	const kept = forwarded.flatMap((name) => {
		const value = call.requestHeader.get(name);
		return value === null ? [] : [[name, value]];
	});
	return {
		...Object.fromEntries(kept),
		...(token !== undefined && { [sealedTokenHeader]: sealToken(token, secret) }),
	};
}

/** The token of a call. A server that needs none has admitted calls with any header. */
export function tokenIn(call: Pick<ReportCall, "requestHeader">): string | undefined {
	try {
		return tokenOf(call);
	} catch {
		return undefined;
	}
}

/** Why a report is missing, after the name of the server. Says nothing about the network. */
function reasonOf(error: unknown): string {
	if (error instanceof AnotherServer) {
		return another;
	}
	const { code } = ConnectError.from(error);
	switch (code) {
		case Code.NotFound:
		case Code.Unimplemented:
			return another;
		case Code.Unauthenticated:
		case Code.PermissionDenied:
		case Code.ResourceExhausted:
			return `refused the call: ${Code[code]}`;
		default:
			return unreachable;
	}
}
