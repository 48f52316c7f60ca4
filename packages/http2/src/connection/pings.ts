import type { Clock } from "@plinth/runtime";
import type { FrameWriter } from "../frames/frame-writer.ts";

const maxPings = 16;

interface Ping {
	readonly sentMs: number;
	readonly onAck: (roundTripMs: number) => void;
	readonly onClose: (error: Error) => void;
}

/** The pings of this side that await acknowledgement, by the number in their payload. */
export class Pings {
	readonly #writer: FrameWriter;
	readonly #clock: Clock;
	readonly #waiting = new Map<number, Ping>();
	#sent = 0;

	constructor(writer: FrameWriter, clock: Clock) {
		this.#writer = writer;
		this.#clock = clock;
	}

	/** Sends a ping. Calls one of the two callbacks, once. */
	send(onAck: (roundTripMs: number) => void, onClose: (error: Error) => void): void {
		if (this.#waiting.size >= maxPings) {
			onClose(new Error(`${maxPings} pings are outstanding`));
			return;
		}
		const number = this.#sent++ >>> 0;
		const payload = Buffer.alloc(8);
		payload.writeUInt32BE(number, 4);
		this.#waiting.set(number, { sentMs: this.#clock.monotonic(), onAck, onClose });
		this.#writer.ping(payload, 0, false);
	}

	/** Takes the payload of an acknowledgement; one that nobody waits for is ignored. */
	acknowledge(bytes: Buffer, start: number): void {
		const number = bytes.readUInt32BE(start + 4);
		const ping = this.#waiting.get(number);
		if (ping !== undefined && bytes.readUInt32BE(start) === 0) {
			this.#waiting.delete(number);
			ping.onAck(this.#clock.monotonic() - ping.sentMs);
		}
	}

	/** The connection has closed. */
	rejectAll(): void {
		const pings = [...this.#waiting.values()];
		this.#waiting.clear();
		for (const { onClose } of pings) {
			onClose(new Error("the connection closed before the client acknowledged a ping"));
		}
	}
}
