import type { Socket } from "node:net";
import type { Clock, Timer } from "@plinth/runtime";

/**
 * Connections that have not sent complete headers yet: each is closed when that takes too long. They are
 * known by their ends, since what arrives within TLS arrives on another socket.
 */
export class SilentConnections {
	readonly #clock: Clock;
	readonly #limitMs: number;
	readonly #silent = new Map<string, { readonly socket: Socket; readonly timer: Timer }>();

	/** @param limitMs - what they get, in milliseconds. */
	constructor(clock: Clock, limitMs: number) {
		this.#clock = clock;
		this.#limitMs = limitMs;
	}

	/** A connection was accepted. */
	add(socket: Socket): void {
		const ends = endsOf(socket);
		this.#silent.set(ends, {
			socket,
			timer: this.#clock.setTimer(this.#limitMs, () => socket.destroy()),
		});
		socket.once("close", () => {
			if (this.#silent.get(ends)?.socket === socket) {
				this.#remove(ends);
			}
		});
	}

	/** Headers have arrived, on this socket or within it. */
	headersArrived(socket: Socket): void {
		this.#remove(endsOf(socket));
	}

	/** Closes all of them. */
	destroy(): void {
		for (const { socket } of [...this.#silent.values()]) {
			socket.destroy();
		}
	}

	#remove(ends: string): void {
		this.#silent.get(ends)?.timer.cancel();
		this.#silent.delete(ends);
	}
}

/** Both ends of a connection, which no other open one has; the same below and within TLS. */
function endsOf({ remoteAddress, remotePort, localAddress }: Socket): string {
	return `${remoteAddress} ${remotePort} ${localAddress}`;
}
