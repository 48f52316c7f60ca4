import { constants, type ServerHttp2Session } from "node:http2";
import type { Clock, Timer } from "@plinth/runtime";

/** An HTTP/2 connection of a listener, from its session on. */
export interface Http2Connection {
	/**
	 * Still answers for `lingerMs` what comes, asks the client for no more calls within that time, and
	 * closes after what is running.
	 */
	close(lingerMs: number): void;
}

/**
 * Closes the session when it has had no stream for `idleMs`, and when it is told to.
 *
 * @param cut ends the connection of a client that does not, once nothing is to be said on it any more.
 */
export function watchOver(
	session: ServerHttp2Session,
	clock: Clock,
	idleMs: number,
	cut: () => void,
): Http2Connection {
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
				// Tells the client to open no more streams, and refuses none yet: what it opens until it has
				// taken notice is answered and not cut off (RFC 9113, section 6.8). Not at once: clients that
				// are about to open one when this comes take it for a failure, and those that were told
				// Unavailable before are not.
				session.goaway(constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1);
				lingering = clock.setTimer(lingerMs / 2, () => {
					session.close();
					// Now it waits for the client, which may have left something unread.
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
