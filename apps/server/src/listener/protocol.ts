import { Buffer } from "node:buffer";
import type { Socket } from "node:net";

/** The protocol of a client, detected by the first bytes that it sends. */
export type Protocol = "http1" | "http2";

/** The first bytes of every HTTP/2 client (RFC 9113, section 3.4). No HTTP/1.1 request begins with them. */
const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** The protocol of a connection that began with `head`, or `undefined` if more bytes are needed. */
export function protocolOf(head: Buffer): Protocol | undefined {
	const length = Math.min(head.length, preface.length);
	if (head.compare(preface, 0, length, 0, length) !== 0) {
		return "http1";
	}
	return length === preface.length ? "http2" : undefined;
}

/**
 * Reads from a new connection until its protocol is known, and calls `decided` once with the bytes that it read; never,
 * if the connection ends before that. Buffers at most one chunk and 24 bytes.
 */
export function detectProtocol(
	socket: Socket,
	decided: (protocol: Protocol, head: Buffer) => void,
): void {
	let head: Buffer = Buffer.alloc(0);
	const onReadable = () => {
		const chunk: Buffer | null = socket.read();
		if (chunk === null) {
			return;
		}
		head = head.length === 0 ? chunk : Buffer.concat([head, chunk]);
		const protocol = protocolOf(head);
		if (protocol !== undefined) {
			socket.off("readable", onReadable);
			socket.off("end", onEnd);
			decided(protocol, head);
		}
	};
	const onEnd = () => socket.destroy();
	socket.on("readable", onReadable);
	socket.once("end", onEnd);
}
