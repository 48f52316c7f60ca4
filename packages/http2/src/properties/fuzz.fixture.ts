import { strict as assert } from "node:assert";
import { duplexPair } from "node:stream";
import { FakeClock } from "@plinth/runtime/testing";
import { clientPreface, flag, frameType, setting } from "../frames/frame.ts";
import {
	frame,
	literals,
	parseFrames,
	requestFields,
	settingsFrame,
	uint32,
} from "../frames.fixture.ts";
import { HpackEncoder } from "../hpack/encoder.ts";
import type { Fields, Http2Stream, ResetOrigin, StreamHandler } from "../http2.ts";
import { plantBug } from "../planted-bug.fixture.ts";
import { settle } from "../raw-client.fixture.ts";
import { serveHttp2 } from "../serve.ts";
import { cut, mutate } from "./changed-frames.fixture.ts";
import { Draw } from "./draw.fixture.ts";

/** Does something of everything that a handler may do, and notes its last event. */
class RandomHandler implements StreamHandler {
	readonly #draw: Draw;
	readonly #stream: Http2Stream;
	#hasHead = false;
	#hasEnd = false;
	ends = 0;

	constructor(draw: Draw, stream: Http2Stream) {
		this.#draw = draw;
		this.#stream = stream;
		this.#act();
	}

	#act(): void {
		const draw = this.#draw;
		const action = draw.below(8);
		if (action === 0) {
			this.#stream.reset(draw.below(20));
		} else if (action === 1) {
			throw new Error("a handler's error");
		} else if (!this.#hasHead) {
			this.#hasHead = true;
			this.#hasEnd = draw.chance(0.2);
			this.#stream.respond(200, ["a", draw.pick(["b", "c"])], this.#hasEnd);
		} else if (!this.#hasEnd && action < 5) {
			this.#stream.write(Buffer.alloc(draw.size(100_000)));
		} else if (!this.#hasEnd) {
			this.#hasEnd = true;
			this.#stream.end(Buffer.alloc(draw.size(1000)), draw.chance(0.5) ? ["d", "e"] : []);
		}
	}

	onData(bytes: Uint8Array): void {
		assert.equal(this.ends, 0, "data after the last event");
		this.#stream.consume(this.#draw.below(bytes.length + 1));
		this.#act();
	}

	onEnd(_: Fields): void {
		assert.equal(this.ends, 0, "an end after the last event");
		this.#act();
	}

	onDrain(): void {
		this.#act();
	}

	onFinish(): void {
		this.ends++;
	}

	onReset(_: number, __: ResetOrigin): void {
		this.ends++;
		if (this.#draw.chance(0.1)) {
			throw new Error("a handler's error");
		}
	}
}

/** The client of a session that breaks no rule, but for the size of bodies that wait for a handler. */
class Session {
	readonly #draw: Draw;
	readonly #encoder = new HpackEncoder();
	/** Streams whose requests have not ended. */
	#open: number[] = [];
	#nextId = 1;

	constructor(draw: Draw) {
		this.#draw = draw;
	}

	frame(): Buffer {
		const draw = this.#draw;
		const kind = draw.below(14);
		if (this.#open.length === 0 || kind < 4) {
			return this.#headers();
		}
		const id = draw.pick(this.#open);
		switch (kind) {
			case 4:
			case 5:
			case 6:
			case 7:
				return frame(frameType.data, this.#end(id, 0.3), id, draw.bytes(draw.size(9000)));
			case 8:
				return frame(frameType.windowUpdate, 0, draw.pick([0, id]), uint32(1 + draw.size(100_000)));
			case 9:
				this.#end(id, 1);
				return draw.chance(0.3)
					? frame(frameType.rstStream, 0, id, uint32(8))
					: frame(frameType.headers, flag.endHeaders | flag.endStream, id, literals("t", "u"));
			case 10:
				return settingsFrame(
					[setting.initialWindowSize, draw.size(200_000)],
					[setting.headerTableSize, draw.size(5000)],
				);
			case 11:
				return frame(frameType.ping, 0, 0, draw.bytes(8));
			case 12:
				return frame(frameType.priority, 0, 1 + draw.below(100), draw.bytes(5));
			default:
				return frame(0x20 + draw.below(200), draw.below(256), draw.below(100), draw.bytes(9));
		}
	}

	#headers(): Buffer {
		const draw = this.#draw;
		const id = this.#nextId;
		this.#nextId += 2;
		this.#open.push(id);
		const end = this.#end(id, 0.3);
		const repeating = ["x-a", draw.pick(["1", "2", "3"])];
		const block = Buffer.concat([literals(...requestFields), this.#encoder.encode(0, repeating)]);
		if (draw.chance(0.8)) {
			return frame(frameType.headers, flag.endHeaders | end, id, block);
		}
		const middle = draw.below(block.length);
		return Buffer.concat([
			frame(frameType.headers, end, id, block.subarray(0, middle)),
			frame(frameType.continuation, flag.endHeaders, id, block.subarray(middle)),
		]);
	}

	#end(id: number, probability: number): number {
		if (!this.#draw.chance(probability)) {
			return 0;
		}
		this.#open = this.#open.filter((each) => each !== id);
		return flag.endStream;
	}
}

/**
 * Sends a session whose frames are changed, reordered and cut anywhere.
 *
 * @throws AssertionError if the connection does not end as it should, or a handler is not notified.
 */
export async function fuzz(seed: number): Promise<void> {
	const draw = new Draw(seed);
	const clock = new FakeClock();
	const [client, socket] = duplexPair();
	const handlers: RandomHandler[] = [];
	const errors: unknown[] = [];
	let received: Buffer = Buffer.alloc(0);
	client.on("data", (chunk: Buffer) => {
		received = Buffer.concat([received, chunk]);
	});
	client.on("error", () => {});
	const onHandlerError = (error: unknown) => errors.push(error);
	const internalErrors: unknown[] = [];
	const onInternalError = (error: unknown) => internalErrors.push(error);
	const limits = {
		streamWindowBytes: draw.pick([1000, 1_000_000]),
		connectionWindowBytes: 10_000_000,
		maxConcurrentStreams: 20,
	};
	const options = { clock, onHandlerError, onInternalError, limits };
	const connection = serveHttp2(socket, options, (stream) => {
		const handler = new RandomHandler(draw, stream);
		handlers.push(handler);
		return handler;
	});
	const session = new Session(draw);
	const frames = Array.from({ length: draw.size(200) }, () => session.frame());
	const isValid = draw.chance(0.3);
	if (!isValid) {
		mutate(draw, frames);
	}
	frames.unshift(settingsFrame(), frame(frameType.settings, flag.ack, 0));
	const preface = Buffer.from(clientPreface);
	if (!isValid && draw.chance(0.01)) {
		preface[draw.below(preface.length)] = 0;
	}
	const pieces = cut(draw, Buffer.concat([preface, ...frames]));
	const hasBug = draw.chance(0.1);
	const buggyPiece = draw.below(pieces.length);
	for (const [index, piece] of pieces.entries()) {
		if (hasBug && index === buggyPiece) {
			plantBug(connection, draw.pick(["framesReceived", "socketWrites"]));
		}
		client.write(piece);
		if (draw.chance(0.3)) {
			await new Promise((resolve) => setImmediate(resolve));
		}
	}
	await settle();
	switch (draw.below(3)) {
		case 0:
			void connection.close();
			clock.advance(2_000);
			break;
		case 1:
			clock.advance(100_000);
			break;
		default:
	}
	await settle();
	client.end();
	await settle();
	clock.advance(10_000);
	const { message } = await connection.closed;
	const expected = internalErrors.length > 0 ? ["internal error", ""] : [""];
	assert.ok(!isValid || expected.includes(message), `a valid session ends with: ${message}`);
	assert.ok(hasBug || internalErrors.length === 0, `an internal error: ${internalErrors[0]}`);
	assert.equal(parseFrames(received).rest.length, 0, "the server has sent half of a frame");
	assert.equal(connection.activeStreams, 0, "streams are left");
	assert.equal(connection.unsentBytes, 0, "bytes are left");
	assert.deepEqual(
		errors.filter((error) => error instanceof Error && error.message !== "a handler's error"),
		[],
		"other errors than those of handlers",
	);
	for (const { ends } of handlers) {
		assert.equal(ends, 1, "a handler's last event");
	}
	assert.equal(clock.nextTimerMs(), undefined, "a timer is left");
}
