import { type ClientHttp2Session, connect as connectHttp2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { onTestFinished } from "vitest";
import { post } from "../../raw-calls.fixture.ts";

/** What a client reads from its socket, and writes to it as a test chooses. */
class TappedSocket extends Duplex {
	readonly #socket: Socket;
	readonly #send: (bytes: Buffer, socket: Socket) => void;

	constructor(socket: Socket, send: (bytes: Buffer, socket: Socket) => void) {
		super();
		this.#socket = socket;
		this.#send = send;
		socket.on("data", (bytes: Buffer) => this.push(bytes));
		socket.on("close", () => this.destroy());
		socket.on("error", () => {});
	}

	override _read(): void {}

	override _write(bytes: Buffer, _: BufferEncoding, done: () => void): void {
		this.#send(bytes, this.#socket);
		done();
	}

	override _destroy(error: Error | null, done: (error: Error | null) => void): void {
		this.#socket.destroy();
		done(error);
	}
}

/** A client of HTTP/2 whose bytes `send` passes to a socket. It accepts any amount of response bytes. */
export function tapSession(
	address: string,
	socket: Socket,
	send: (bytes: Buffer, socket: Socket) => void,
): ClientHttp2Session {
	const session = connectHttp2(address, {
		createConnection: () => new TappedSocket(socket, send),
		settings: { initialWindowSize: 2 ** 30 },
		maxSessionMemory: 1_000,
	});
	session.on("error", () => {});
	session.on("connect", () => session.setLocalWindowSize(2 ** 30));
	onTestFinished(() => session.destroy());
	return session;
}

/** The bytes of calls, from the preface of their connection on. */
export async function recordCalls(
	address: string,
	path: string,
	bodies: readonly string[],
): Promise<Buffer> {
	const parts: Buffer[] = [];
	const session = tapSession(
		address,
		connect(Number(new URL(address).port), "127.0.0.1"),
		(bytes, socket) => {
			parts.push(Buffer.from(bytes));
			socket.write(bytes);
		},
	);
	const ended = await Promise.all(bodies.map((body) => post(session, path, body).ended));
	const failed = ended.find(({ status }) => status !== "200");
	if (failed !== undefined) {
		throw new Error(`a recorded call has status ${failed.status}`);
	}
	const recorded = Buffer.concat(parts);
	session.destroy();
	return recorded;
}
