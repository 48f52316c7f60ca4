import { constants, type ServerHttp2Session } from "node:http2";
import type { Clock, Timer } from "@plinth/runtime";

/** A connection of `node:http2`. */
export interface NodeConnection {
	/**
	 * Serves new calls for `lingerMs` and tells the client in that time to start no more. Then closes the connection once
	 * running calls have finished.
	 */
	close(lingerMs: number): void;
}

/**
 * Closes the session when it has had no stream for `idleMs`, or on request.
 *
 * @param cut closes the connection if the client does not close it after the session has ended.
 */
export function manageConnection(
	session: ServerHttp2Session,
	clock: Clock,
	idleMs: number,
	cut: () => void,
): NodeConnection {
	let streams = 0;
	let closing = false;
	/** Called when the last stream has ended, while the session closes. */
	let ended = () => {};
	const arm = () => clock.setTimer(idleMs, () => session.close());
	let idle = arm();
	let lingering: Timer | undefined;
	session.on("stream", (stream) => {
		streams += 1;
		idle.cancel();
		stream.once("close", () => {
			streams -= 1;
			if (streams > 0) {
				return;
			}
			if (closing) {
				ended();
			} else if (!session.closed) {
				idle = arm();
			}
		});
	});
	session.once("close", () => {
		idle.cancel();
		lingering?.cancel();
	});

	return {
		close(lingerMs) {
			if (session.closed || closing) {
				return;
			}
			closing = true;
			lingering = clock.setTimer(lingerMs / 2, () => {
				if (session.destroyed) {
					return;
				}
				// Tells the client to open no more streams, but refuses none yet: streams that it opens before it
				// has received this are served (RFC 9113, section 6.8). Not sent immediately: clients that are
				// about to open a stream when it arrives treat it as a failure, and clients that have received
				// Unavailable before do not open one.
				session.goaway(constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1);
				lingering = clock.setTimer(lingerMs / 2, () => {
					session.close();
					// Waits for the client to close the connection: it may not have read everything.
					ended = () => {
						lingering = clock.setTimer(lingerMs, cut);
					};
					if (streams === 0) {
						ended();
					}
				});
			});
		},
	};
}
