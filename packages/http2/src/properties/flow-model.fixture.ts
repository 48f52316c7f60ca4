import { strict as assert } from "node:assert";
import { flag, frameType, setting } from "../frames/frame.ts";
import { type Frame, frame, settingsFrame, uint32 } from "../frames.fixture.ts";
import { RawClient, type Recorded, settle } from "../raw-client.fixture.ts";
import { Draw } from "./draw.fixture.ts";

const maxStreams = 6;
const size = { stream: 90_000, connection: 130_000 };

/** What a client knows of a stream, and what its handler has done. */
interface ModelStream {
	readonly id: number;
	readonly recorded: Recorded;
	/** What the server may still send. */
	window: number;
	received: number;
	written: number;
	isEnded: boolean;
	hasTrailers: boolean;
	sawEnd: boolean;
	/** What the client may still send. */
	credit: number;
	unconsumed: number;
	hasSentEnd: boolean;
}

/**
 * A client and handlers that do random things within the rules of flow control, beside a model that counts all
 * credit. After each step:
 *
 * - The server has never sent more than the client allows, nor a frame that is too large, and bytes in their order.
 * - It has sent everything that the client allows.
 * - It has returned all credit but less than is left, and no more than was consumed.
 */
class FlowModel {
	readonly #draw: Draw;
	readonly #client = new RawClient({
		consumes: false,
		limits: {
			streamWindowBytes: size.stream,
			connectionWindowBytes: size.connection,
			controlFrames: { burst: 1e9, perSecond: 1 },
			settingsFrames: { burst: 1e9, perSecond: 1 },
			streamErrors: { burst: 1e9, perSecond: 1 },
		},
	});
	readonly #streams = new Map<number, ModelStream>();
	#seen = 0;
	#nextId = 1;
	#initialWindow = 65_535;
	#maxFrameBytes = 16_384;
	#window = 65_535;
	#credit = 65_535;

	constructor(seed: number) {
		this.#draw = new Draw(seed);
	}

	async run(): Promise<void> {
		await this.#settled();
		for (let count = this.#draw.below(80); count > 0; count--) {
			await this.#step();
			await this.#settled();
		}
		await this.#finish();
	}

	async #step(): Promise<void> {
		const draw = this.#draw;
		const streams = [...this.#streams.values()];
		const step = draw.below(12);
		if (streams.length === 0 || (step === 0 && streams.length < maxStreams)) {
			await this.#open();
		} else if (step <= 2) {
			await this.#changeSettings();
		} else if (step === 3) {
			const increment = 1 + draw.size(100_000);
			this.#window += increment;
			await this.#client.send(frame(frameType.windowUpdate, 0, 0, uint32(increment)));
		} else {
			await this.#stepOf(draw.pick(streams), step);
		}
	}

	async #open(): Promise<void> {
		const id = this.#nextId;
		this.#nextId += 2;
		await this.#client.send(this.#client.headers(id, false));
		const recorded = this.#client.request;
		recorded.stream.respond(200, []);
		this.#streams.set(id, {
			id,
			recorded,
			window: this.#initialWindow,
			received: 0,
			written: 0,
			isEnded: false,
			hasTrailers: false,
			sawEnd: false,
			credit: size.stream,
			unconsumed: 0,
			hasSentEnd: false,
		});
	}

	async #changeSettings(): Promise<void> {
		const draw = this.#draw;
		if (draw.chance(0.3)) {
			this.#maxFrameBytes = 16_384 + draw.size(50_000);
			await this.#client.send(settingsFrame([setting.maxFrameSize, this.#maxFrameBytes]));
			return;
		}
		// Two values in one frame: the difference counts, not the last value.
		const values = [draw.size(150_000), draw.size(150_000)];
		for (const value of values) {
			for (const stream of this.#streams.values()) {
				stream.window += value - this.#initialWindow;
			}
			this.#initialWindow = value;
		}
		await this.#client.send(
			settingsFrame(...values.map((value) => [setting.initialWindowSize, value] as const)),
		);
	}

	async #stepOf(stream: ModelStream, step: number): Promise<void> {
		const draw = this.#draw;
		const { recorded } = stream;
		switch (step) {
			case 4:
			case 5:
				if (!stream.sawEnd) {
					const increment = 1 + draw.size(100_000);
					stream.window += increment;
					await this.#client.send(frame(frameType.windowUpdate, 0, stream.id, uint32(increment)));
				}
				break;
			case 6:
			case 7:
				this.#write(stream);
				break;
			case 8:
				if (!stream.isEnded && draw.chance(0.4)) {
					stream.isEnded = true;
					stream.hasTrailers = draw.chance(0.5);
					recorded.stream.end(undefined, stream.hasTrailers ? ["a", "b"] : []);
				}
				break;
			case 9:
				await this.#send(stream);
				break;
			case 10: {
				const byteCount = draw.size(stream.unconsumed);
				stream.unconsumed -= byteCount;
				recorded.stream.consume(byteCount);
				break;
			}
			default:
				if (draw.chance(0.2)) {
					this.#streams.delete(stream.id);
					await this.#reset(stream);
				}
		}
	}

	#write(stream: ModelStream): void {
		if (stream.isEnded) {
			return;
		}
		for (let count = 1 + this.#draw.below(3); count > 0; count--) {
			const room = Math.min(this.#window, stream.window, 60_000);
			const length = this.#draw.chance(0.3)
				? Math.max(0, room + this.#draw.below(3) - 1)
				: this.#draw.size(60_000);
			const start = stream.written;
			stream.written += length;
			stream.recorded.stream.write(pattern(start, length));
		}
	}

	async #send(stream: ModelStream): Promise<void> {
		if (stream.hasSentEnd) {
			return;
		}
		const draw = this.#draw;
		const room = Math.min(stream.credit, this.#credit, 16_384);
		const padding = room > 300 && draw.chance(0.2) ? draw.below(255) + 1 : 0;
		const length = draw.chance(0.3) ? room - padding : draw.size(room - padding);
		stream.hasSentEnd = draw.chance(0.1);
		stream.credit -= length + padding;
		stream.unconsumed += length;
		this.#credit -= length + padding;
		const flags = (padding > 0 ? flag.padded : 0) | (stream.hasSentEnd ? flag.endStream : 0);
		const payload = Buffer.alloc(length + padding);
		if (padding > 0) {
			payload[0] = padding - 1;
		}
		await this.#client.send(frame(frameType.data, flags, stream.id, payload));
	}

	async #reset(stream: ModelStream): Promise<void> {
		if (this.#draw.chance(0.5)) {
			stream.recorded.stream.reset(8);
		} else {
			await this.#client.send(frame(frameType.rstStream, 0, stream.id, uint32(8)));
		}
		await settle();
		assert.match(stream.recorded.events.at(-1) ?? "", /^reset 8/);
	}

	/** Lets the server finish what it can do, takes its frames, and compares. */
	async #settled(): Promise<void> {
		await settle();
		const { frames } = this.#client;
		for (; this.#seen < frames.length; this.#seen++) {
			const received = frames[this.#seen];
			if (received !== undefined) {
				this.#take(received);
			}
		}
		let unsent = 0;
		let unconsumed = 0;
		for (const stream of this.#streams.values()) {
			unsent += stream.written - stream.received;
			// The credit of a stream that has finished is returned to the connection.
			unconsumed += stream.sawEnd && stream.hasSentEnd ? 0 : stream.unconsumed;
			this.#check(stream);
		}
		assert.equal(this.#client.connection.unsentBytes, unsent, "the connection's unsent bytes");
		const kept = size.connection - this.#credit - unconsumed;
		assert.ok(kept === 0 || (kept > 0 && kept < this.#credit), `the connection keeps ${kept}`);
	}

	#check(stream: ModelStream): void {
		const { id, recorded } = stream;
		const waiting = stream.written - stream.received;
		assert.equal(recorded.stream.unsentBytes, waiting, `unsent bytes of stream ${id}`);
		if (waiting > 0) {
			const isAllowed = stream.window > 0 && this.#window > 0;
			assert.ok(!isAllowed, `stream ${id} does not send ${waiting} bytes`);
		} else {
			assert.equal(stream.sawEnd, stream.isEnded, `the end of stream ${id}`);
		}
		if (!stream.hasSentEnd) {
			const kept = size.stream - stream.credit - stream.unconsumed;
			assert.ok(kept === 0 || (kept > 0 && kept < stream.credit), `stream ${id} keeps ${kept}`);
		}
		if (stream.sawEnd && stream.hasSentEnd) {
			this.#streams.delete(id);
			assert.deepEqual(recorded.events.slice(-1), ["finish"]);
		}
	}

	#take({ type, flags, id, payload }: Frame): void {
		const stream = this.#streams.get(id);
		if (type === frameType.goaway) {
			assert.fail(`the connection has ended: ${payload.subarray(8)}`);
		} else if (type === frameType.windowUpdate) {
			const increment = payload.readUInt32BE();
			if (id === 0) {
				this.#credit += increment;
			} else if (stream !== undefined) {
				stream.credit += increment;
			}
		} else if (type === frameType.data) {
			this.#window -= payload.length;
			assert.ok(this.#window >= 0, "more than the connection's window");
			assert.ok(payload.length <= this.#maxFrameBytes, `a frame of ${payload.length} bytes`);
			if (stream !== undefined) {
				stream.window -= payload.length;
				assert.ok(payload.length === 0 || stream.window >= 0, `more than the window of ${id}`);
				assert.ok(payload.equals(pattern(stream.received, payload.length)), "other bytes");
				stream.received += payload.length;
			}
		}
		const isEnd = type === frameType.data || type === frameType.headers;
		if (stream !== undefined && isEnd && (flags & flag.endStream) !== 0) {
			assert.equal(stream.received, stream.written, "the end comes early");
			assert.equal(type === frameType.headers, stream.hasTrailers);
			stream.sawEnd = true;
		}
	}

	/** Uses the credit of a stream as far as the connection allows. Then nothing of it may be kept. */
	async #useCredit(stream: ModelStream): Promise<void> {
		while (stream.credit > 0 && this.#credit > 0) {
			const length = Math.min(stream.credit, this.#credit, 16_384);
			stream.credit -= length;
			this.#credit -= length;
			stream.unconsumed += length;
			await this.#client.send(frame(frameType.data, 0, stream.id, Buffer.alloc(length)));
			await this.#settled();
		}
		if (stream.credit === 0) {
			assert.equal(stream.unconsumed, size.stream);
		}
	}

	/** Uses all credit, to the last byte: nothing of it was lost. */
	async #useAllCredit(): Promise<void> {
		await this.#open();
		await this.#open();
		for (const stream of this.#streams.values()) {
			await this.#useCredit(stream);
		}
		const used = [...this.#streams.values()].map(({ unconsumed }) => unconsumed);
		assert.deepEqual(used, [size.stream, size.connection - size.stream]);
	}

	/** Gives all credit: everything comes to its end. */
	async #finish(): Promise<void> {
		const left = [...this.#streams.values()];
		this.#window += 10_000_000;
		await this.#client.send(frame(frameType.windowUpdate, 0, 0, uint32(10_000_000)));
		const receiving = left.find(({ hasSentEnd }) => !hasSentEnd);
		if (receiving !== undefined) {
			await this.#useCredit(receiving);
		}
		for (const stream of left) {
			if (!stream.sawEnd) {
				stream.window += 10_000_000;
				await this.#client.send(frame(frameType.windowUpdate, 0, stream.id, uint32(10_000_000)));
			}
			if (!stream.isEnded) {
				stream.isEnded = true;
				stream.recorded.stream.end();
			}
			if (!stream.hasSentEnd) {
				stream.hasSentEnd = true;
				await this.#client.send(frame(frameType.data, flag.endStream, stream.id));
			}
		}
		// Responses of several turns.
		for (let turn = 0; turn < 20; turn++) {
			await settle();
		}
		await this.#settled();
		assert.equal(this.#streams.size, 0);
		assert.equal(this.#client.connection.activeStreams, 0);
		await this.#useAllCredit();
		this.#client.connection.destroy();
		this.#client.socket.end();
		await this.#client.connection.closed;
	}
}

/** The bytes of a body from an offset on: each depends on its place. */
function pattern(start: number, length: number): Buffer {
	const offset = start % 251;
	return Buffer.from(cycle.subarray(offset, offset + length));
}

const cycle = Uint8Array.from({ length: 251 + 70_000 }, (_, index) => index % 251);

/** @throws AssertionError if the server breaks a rule of flow control. */
export async function checkFlowControl(seed: number): Promise<void> {
	await new FlowModel(seed).run();
}
