import { constants, type ServerHttp2Session } from "node:http2";
import type { Clock } from "@plinth/runtime";

/** An HTTP/2 connection of a listener, from its session on. */
export interface Http2Connection {
	/** Takes no more calls, and closes after those that are running. */
	close(): void;
}

/** Closes the session when it has had no stream for `idleMs`, and when it is told to. */
export function watchOver(
	session: ServerHttp2Session,
	clock: Clock,
	idleMs: number,
): Http2Connection {
	let streams = 0;
	let closing = false;
	const arm = () => clock.setTimer(idleMs, () => session.close());
	let idle = arm();
	session.on("stream", (stream) => {
		streams += 1;
		idle.cancel();
		stream.once("close", () => {
			streams -= 1;
			if (streams > 0 || session.closed) {
				return;
			}
			if (closing) {
				session.close();
			} else {
				idle = arm();
			}
		});
	});
	session.once("close", () => idle.cancel());

	return {
		close() {
			if (session.closed) {
				return;
			}
			closing = true;
			if (streams === 0) {
				session.close();
				return;
			}
			// Tells the client to open no more streams, and closes once it has heard of it: what it
			// opens until then is answered and not cut off (RFC 9113, section 6.8).
			session.goaway(constants.NGHTTP2_NO_ERROR, 2 ** 31 - 1);
			session.ping(() => session.close());
		},
	};
}
