import { Code } from "@connectrpc/connect";
import { errorCode } from "@plinth/http2";
import type { Clock } from "@plinth/runtime";
import { Health } from "../gen/grpc/health/v1/health_pb.ts";
import { type EventLoopTurns, healthChecks, unidentified } from "../limits/event-loop-turns.ts";
import type { Connection } from "./connection.ts";
import { type RequestRefusal, refuseRequest } from "./refuse-request.ts";
import type { HttpConnection, HttpRequest, RequestHandler } from "./request-handler.ts";

/** Options of `takeTurns`. */
export interface TakeTurnsOptions {
	readonly turns: Pick<EventLoopTurns, "run" | "isCrowded">;
	readonly connectionOf: (request: HttpRequest) => Connection;
	/** How many requests of one caller may wait. */
	readonly waitingPerCaller: number;
	readonly clock: Clock;
	/** Called with each request that is refused because too many wait. */
	readonly onRefused: () => void;
	/** Called with each request that gets its response here, before the response is written. */
	readonly onResponse: RequestHandler;
}

/** How many callers can have their maximum of waiting requests. Each request may buffer up to 64 KiB of its body. */
const fullCallers = 2;

/** How many requests of a connection may be refused in a second before it is closed. */
const refusalsPerSecond = 1_024;

const healthPath = `/${Health.typeName}/`;

const tooMany: RequestRefusal = {
	code: Code.ResourceExhausted,
	message: "too many requests are waiting for their turn: wait for some of them, and try again",
};

/**
 * Starts a request when it is its caller's turn. The token has not been read yet, so the caller is the one whose calls
 * were admitted on the connection before. All connections without one count as a single caller, so that they get no
 * larger share by being many; so do all health checks.
 *
 * A request whose client is gone before its turn never starts. A connection whose requests keep being refused is
 * closed: its client does not wait for responses.
 */
export function takeTurns(options: TakeTurnsOptions, next: RequestHandler): RequestHandler {
	const { turns, connectionOf, waitingPerCaller, clock, onRefused, onResponse } = options;
	const mostWaiting = fullCallers * waitingPerCaller;
	return (request, response) => {
		const connection = connectionOf(request);
		const caller = isProbe(request) ? healthChecks : (connection.caller ?? unidentified);
		const taker = { caller, connection: connection.turnKey };
		if (turns.isCrowded(taker, waitingPerCaller, mostWaiting)) {
			if (request.isGone) {
				return;
			}
			onRefused();
			if (request.connection.isMultiplexed) {
				const refusals = connection.refusals.add(clock.monotonic());
				// The connection of an agent has other clients too.
				if (refusals > refusalsPerSecond && request.client === undefined) {
					if (refusals === refusalsPerSecond + 1) {
						closeLater(request.connection);
					}
					return;
				}
				// This code tells the client that nothing was done, so that it may retry.
				response.reset(errorCode.refusedStream);
			} else {
				onResponse(request, response);
				refuseRequest(request, response, tooMany);
			}
			return;
		}
		const leave = turns.run(taker, () => {
			if (!request.isGone) {
				next(request, response);
			}
		});
		if (leave !== undefined) {
			response.onceClosed(leave);
		}
	};
}

/** Closes it later: Node aborts the process if a session is destroyed while it reads received data. */
function closeLater(connection: HttpConnection): void {
	setImmediate(() => connection.destroy(errorCode.enhanceYourCalm));
}

/** Whether a request is a health check of a kind that needs no token. */
function isProbe({ target }: HttpRequest): boolean {
	return target === "/healthz" || target === "/readyz" || target.startsWith(healthPath);
}
