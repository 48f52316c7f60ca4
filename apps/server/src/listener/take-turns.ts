import { constants } from "node:http2";
import { Code } from "@connectrpc/connect";
import type { EventLoopTurns } from "../limits/event-loop-turns.ts";
import type { Connection } from "./connection.ts";
import { type RequestRefusal, refuseRequest } from "./refuse-request.ts";
import type { RequestHandler } from "./request-handler.ts";

/** What requests take their turns with. */
export interface TakeTurnsOptions {
	readonly turns: Pick<EventLoopTurns, "run" | "isCrowded">;
	readonly connectionOf: (...exchange: Parameters<RequestHandler>) => Connection;
	/** Requests of one caller that may wait. */
	readonly waitingPerCaller: number;
	/** Observes each request that is refused because too many wait. */
	readonly onRefused: () => void;
	/** Observes each request that is answered here, before its response is written. */
	readonly onAnswered: RequestHandler;
}

/** Of how many callers as many requests as possible may wait. */
const fullCallers = 8;

const tooMany: RequestRefusal = {
	code: Code.ResourceExhausted,
	message: "too many requests wait for their turn: wait for some, and try again",
};

/** Whose time it is before a call has been let in on a connection: theirs together. */
const strangers = {};

/**
 * Lets a request begin when it is its caller's turn. The caller is the one whose call was let in last on
 * the connection, since nothing has been read yet that says who calls now. All connections without one are
 * one caller together, so that they take no more from the others by being many.
 *
 * A request whose client has gone before its turn never begins.
 */
export function takeTurns(options: TakeTurnsOptions, next: RequestHandler): RequestHandler {
	const { turns, connectionOf, waitingPerCaller, onRefused, onAnswered } = options;
	const mostWaiting = fullCallers * waitingPerCaller;
	return (request, response) => {
		const connection = connectionOf(request, response);
		const caller = connection.caller ?? strangers;
		if (turns.isCrowded({ caller, connection }, waitingPerCaller, mostWaiting)) {
			onRefused();
			if ("stream" in response) {
				// It says that nothing was done, so that clients try again by themselves.
				response.stream.close(constants.NGHTTP2_REFUSED_STREAM);
			} else {
				onAnswered(request, response);
				refuseRequest(request, response, tooMany);
			}
			return;
		}
		turns.run({ caller, connection }, () => {
			if (!isGone(request, response)) {
				next(request, response);
			}
		});
	};
}

function isGone(...[request, response]: Parameters<RequestHandler>): boolean {
	return "stream" in response
		? response.stream === undefined || response.stream.destroyed || response.stream.closed
		: request.socket.destroyed;
}
