import { connect, createServer, type Server, type Socket } from "node:net";
import type { Clock, Timer } from "@plinth/runtime";

/** An address to listen on or to connect to. */
export interface Address {
	readonly host: string;
	readonly port: number;
}

/** Options of a front. */
export interface TcpFrontOptions {
	readonly clock: Clock;
	/** How long a connection waits for a target. */
	readonly waitMs: number;
	/** The maximum number of connections that wait. Further ones are closed. */
	readonly waiting: number;
}

/** A connection that waits. */
interface Waiting {
	readonly client: Socket;
	readonly timeout: Timer;
}

/** How often a connection to a target that refuses it waits for the next one. */
const refusals = 10;

/**
 * Holds a port, and forwards its connections to a target that changes:
 *
 * ```
 * client ──▶ port ──▶ has a target? ── yes ──▶ forwarded, byte by byte, in both directions
 *                          └─ no ──▶ waits for the next one; closed after `waitMs`
 * ```
 *
 * A connection is paused until it is forwarded, so that the kernel keeps what it sends. Connections that are forwarded
 * stay with their target until one of both sides ends.
 */
export class TcpFront {
	readonly #options: TcpFrontOptions;
	readonly #server: Server;
	readonly #connections = new Set<Socket>();
	readonly #waiting = new Map<Socket, Waiting>();
	#target: Address | undefined;

	constructor(options: TcpFrontOptions) {
		this.#options = options;
		this.#server = createServer({ allowHalfOpen: true, pauseOnConnect: true, noDelay: true });
		this.#server.on("connection", (client) => this.#accept(client));
	}

	/** Opens the port. Resolves to its address. @throws Error of the system, such as EADDRINUSE. */
	listen(address: Address): Promise<Address> {
		return new Promise((resolve, reject) => {
			this.#server.once("error", reject);
			this.#server.listen({ ...address }, () => {
				this.#server.off("error", reject);
				// A connection that can't be accepted, such as for too many open files, is not the end.
				this.#server.on("error", () => {});
				const bound = this.#server.address();
				const port = typeof bound === "object" && bound !== null ? bound.port : address.port;
				resolve({ host: address.host, port });
			});
		});
	}

	/** Connections that wait for a target. */
	get waiting(): number {
		return this.#waiting.size;
	}

	/** Open connections, of clients and to targets. */
	get connections(): number {
		return this.#connections.size;
	}

	/** Forwards connections to this target from now on, those that wait first. */
	forward(target: Address): void {
		this.#target = target;
		for (const { client, timeout } of [...this.#waiting.values()]) {
			timeout.cancel();
			this.#waiting.delete(client);
			this.#connect(client, target, 0);
		}
	}

	/** New connections wait from now on. Those that are forwarded stay open. */
	hold(): void {
		this.#target = undefined;
	}

	/** Closes the port and all connections. */
	async close(): Promise<void> {
		this.#target = undefined;
		const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
		for (const { timeout } of this.#waiting.values()) {
			timeout.cancel();
		}
		this.#waiting.clear();
		for (const socket of [...this.#connections]) {
			socket.destroy();
		}
		await closed;
	}

	#accept(client: Socket): void {
		this.#track(client);
		client.once("close", () => {
			this.#waiting.get(client)?.timeout.cancel();
			this.#waiting.delete(client);
		});
		if (this.#target === undefined) {
			this.#wait(client);
		} else {
			this.#connect(client, this.#target, 0);
		}
	}

	#track(socket: Socket): void {
		this.#connections.add(socket);
		// An error is followed by `close`, which ends the other side.
		socket.on("error", () => {});
		socket.once("close", () => this.#connections.delete(socket));
	}

	#wait(client: Socket): void {
		if (client.destroyed) {
			return;
		}
		if (this.#waiting.size >= this.#options.waiting) {
			client.resetAndDestroy();
			return;
		}
		const timeout = this.#options.clock.setTimer(this.#options.waitMs, () =>
			client.resetAndDestroy(),
		);
		this.#waiting.set(client, { client, timeout });
	}

	/** @param refused how many targets have refused this connection so far. */
	#connect(client: Socket, target: Address, refused: number): void {
		if (client.destroyed) {
			return;
		}
		const server = connect({ ...target, allowHalfOpen: true, noDelay: true });
		this.#track(server);
		const onClientClosed = () => server.destroy();
		client.once("close", onClientClosed);
		let isConnected = false;
		server.once("connect", () => {
			isConnected = true;
			join(client, server);
		});
		server.once("close", () => {
			client.off("close", onClientClosed);
			if (isConnected || client.destroyed) {
				return;
			}
			// The target has just closed its port: nothing was sent yet, so another one can have the connection.
			if (refused >= refusals) {
				client.resetAndDestroy();
			} else if (this.#target === undefined || this.#target === target) {
				this.#waitAgain(client, target, refused + 1);
			} else {
				this.#connect(client, this.#target, refused + 1);
			}
		});
	}

	#waitAgain(client: Socket, target: Address, refused: number): void {
		if (this.#target === target) {
			this.#options.clock.setTimer(20, () => {
				if (this.#target === undefined) {
					this.#wait(client);
				} else {
					this.#connect(client, this.#target, refused);
				}
			});
		} else {
			this.#wait(client);
		}
	}
}

/** Passes bytes, ends and resets between two connections. Each waits while the other can't write. */
function join(client: Socket, server: Socket): void {
	pass(client, server);
	pass(server, client);
}

function pass(from: Socket, to: Socket): void {
	// Ends the other side's writing when this side has ended, and waits while the other side is full.
	from.pipe(to);
	from.once("error", () => to.resetAndDestroy());
	from.once("close", () => {
		// All was read and passed on before an end. Otherwise the connection was cut off.
		if (!from.readableEnded) {
			to.destroy();
		}
	});
}
