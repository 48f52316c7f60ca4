import { Code, ConnectError } from "@connectrpc/connect";
import { type Clock, sleep, unlessAborted } from "@plinth/runtime";

/** What a window allows to be in flight. */
export interface SendWindowLimits {
	readonly messages: number;
	readonly bytes: number;
	/** How long the peer may leave a full window unacknowledged. */
	readonly acknowledgeMs: number;
}

/** The messages of a stream that are sent and not acknowledged. */
export class SendWindow {
	readonly #limits: SendWindowLimits;
	readonly #clock: Clock;
	/** The messages in flight, by their sequence: the oldest is the first. */
	readonly #inFlight = new Map<bigint, { readonly bytes: number; readonly sentMs: number }>();
	#bytes = 0;
	#sequence = 0n;
	#room: PromiseWithResolvers<void> | undefined;

	constructor(limits: SendWindowLimits, clock: Clock) {
		this.#limits = limits;
		this.#clock = clock;
	}

	/** How many messages were sent. */
	get sent(): number {
		return Number(this.#sequence);
	}

	/** How many of them are not acknowledged. */
	get unacknowledged(): number {
		return this.#inFlight.size;
	}

	/** How long ago the oldest of those was sent, in milliseconds; 0 if there is none. */
	get oldestMs(): number {
		const [oldest] = this.#inFlight.values();
		return oldest === undefined ? 0 : this.#clock.monotonic() - oldest.sentMs;
	}

	/** Counts a message, and returns its sequence. */
	send(bytes: number): bigint {
		this.#sequence += 1n;
		this.#inFlight.set(this.#sequence, { bytes, sentMs: this.#clock.monotonic() });
		this.#bytes += bytes;
		return this.#sequence;
	}

	/** The peer has stored all messages up to that one. */
	acknowledge(sequence: bigint): void {
		for (const [sent, { bytes }] of this.#inFlight) {
			if (sent > sequence) {
				break;
			}
			this.#inFlight.delete(sent);
			this.#bytes -= bytes;
		}
		if (this.#hasRoom) {
			this.#room?.resolve();
			this.#room = undefined;
		}
	}

	/**
	 * Resolves when another message may be sent.
	 *
	 * @throws ConnectError Aborted if the peer acknowledges nothing for too long; the signal's reason.
	 */
	async room(signal: AbortSignal): Promise<void> {
		while (!this.#hasRoom) {
			this.#room ??= Promise.withResolvers();
			using timeout = new Timeout();
			const { acknowledgeMs } = this.#limits;
			const tooLate = sleep(this.#clock, acknowledgeMs, timeout.signal).then(() => {
				throw new ConnectError(
					`nothing was acknowledged for ${acknowledgeMs / 1_000} s: stream again`,
					Code.Aborted,
				);
			});
			tooLate.catch(() => {});
			await unlessAborted(Promise.race([this.#room.promise, tooLate]), signal);
		}
	}

	get #hasRoom(): boolean {
		return this.#inFlight.size < this.#limits.messages && this.#bytes < this.#limits.bytes;
	}
}

/** A signal that aborts when it is disposed of. */
class Timeout {
	readonly #controller = new AbortController();

	get signal(): AbortSignal {
		return this.#controller.signal;
	}

	[Symbol.dispose](): void {
		this.#controller.abort(new Error("no longer needed"));
	}
}
