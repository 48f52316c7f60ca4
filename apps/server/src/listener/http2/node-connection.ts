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
 * Closes the session when it has had no stream for `idleMs`, or on request. A closed session waits until its client has
 * taken all that was written, and then until the client closes the connection, both for as long as the client likes.
 *
 * Invariant: while no stream is open, a timer runs at whose end the connection is closed, or the session, and then the
 * connection at the end of another one.
 *
 * @param cut closes the connection, whatever its client does.
 */
export function manageConnection(
	session: ServerHttp2Session,
	clock: Clock,
	idleMs: number,
	cut: () => void,
): NodeConnection {
	let streams = 0;
	let closing = false;
	/** The connection has closed. Streams may report their ends later. */
	let isClosed = false;
	/** Called when the last stream has ended, while the session closes. */
	let ended = () => {};
	const closeIdle = () => {
		session.close();
		idle = clock.setTimer(idleMs, cut);
	};
	/** Runs while no stream is open, unless `close` was called. */
	let idle = clock.setTimer(idleMs, closeIdle);
	let lingering: Timer | undefined;
	session.on("stream", (stream) => {
		streams += 1;
		idle.cancel();
		stream.once("close", () => {
			streams -= 1;
			if (streams > 0 || isClosed) {
				return;
			}
			if (closing) {
				ended();
			} else {
				// A session that its client has closed: the client may still read the last response.
				idle = clock.setTimer(idleMs, session.closed ? cut : closeIdle);
			}
		});
	});
	session.once("close", () => {
		isClosed = true;
		idle.cancel();
		lingering?.cancel();
	});

	return {
		close(lingerMs) {
			if (closing) {
				return;
			}
			closing = true;
			idle.cancel();
			lingering = clock.setTimer(lingerMs / 2, () => {
				if (!session.closed && !session.destroyed) {
					// Tells the client to open no more streams, but refuses none yet: streams that it opens before it
					// has received this are served (RFC 9113, section 6.8). Not sent immediately: clients that are
					// about to open a stream when it arrives treat it as a failure, and clients that have received
					// Unavailable before do not open one.
					session.goaway(constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1);
				}
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
