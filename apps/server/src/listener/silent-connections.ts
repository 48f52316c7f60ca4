import type { Socket } from "node:net";
import type { Clock, Timer } from "@plinth/runtime";

/**
 * Connections that have not sent complete headers yet. Each is closed when that takes too long. They are identified by
 * their endpoints, because decrypted data arrives on another socket.
 */
export class SilentConnections {
	readonly #clock: Clock;
	readonly #limitMs: number;
	readonly #silent = new Map<string, { readonly socket: Socket; readonly timer: Timer }>();

	/** @param limitMs - how long a connection may be silent, in milliseconds. */
	constructor(clock: Clock, limitMs: number) {
		this.#clock = clock;
		this.#limitMs = limitMs;
	}

	/** A connection was accepted. */
	add(socket: Socket): void {
		const endpoints = endpointsOf(socket);
		this.#silent.set(endpoints, {
			socket,
			timer: this.#clock.setTimer(this.#limitMs, () => socket.destroy()),
		});
		socket.once("close", () => {
			if (this.#silent.get(endpoints)?.socket === socket) {
				this.#remove(endpoints);
			}
		});
	}

	/** Headers have arrived on this socket, or on the decrypted one. */
	headersArrived(socket: Socket): void {
		this.#remove(endpointsOf(socket));
	}

	/** Closes all of them. */
	destroy(): void {
		for (const { socket } of [...this.#silent.values()]) {
			socket.destroy();
		}
	}

	#remove(endpoints: string): void {
		this.#silent.get(endpoints)?.timer.cancel();
		this.#silent.delete(endpoints);
	}
}

/** The endpoints of a connection, which are unique among open ones, and the same below and above TLS. */
function endpointsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
	return `${remoteAddress} ${remotePort} ${localAddress}`;
}
