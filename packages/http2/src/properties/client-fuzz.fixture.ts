import { strict as assert } from "node:assert";
import { duplexPair } from "node:stream";
import { FakeClock } from "@plinth/runtime/testing";
import { headers, requestHead } from "../client/raw-server.fixture.ts";
import { connectHttp2 } from "../connect.ts";
import { clientPreface, flag, frameType, setting } from "../frames/frame.ts";
import { frame, parseFrames, settingsFrame, uint32 } from "../frames.fixture.ts";
import type { Http2ClientConnection, Http2ClientStream, ResponseHandler } from "../http2.ts";
import { settle } from "../raw-client.fixture.ts";
import { cut, mutate } from "./changed-frames.fixture.ts";
import { Draw } from "./draw.fixture.ts";

/** Does something of everything that a caller may do, and notes its last event. */
class RandomCaller implements ResponseHandler {
	readonly #draw: Draw;
	readonly #stream: Http2ClientStream;
	#hasHead = false;
	#hasEnd = false;
	ends = 0;

	constructor(draw: Draw, connection: Http2ClientConnection) {
		this.#draw = draw;
		this.#stream = connection.request([...requestHead, "x-a", draw.pick(["1", "2"])], this);
		this.act();
	}

	act(): void {
		const draw = this.#draw;
		const action = draw.below(10);
		if (action === 0) {
			this.#stream.reset(draw.below(20));
		} else if (action < 4 && !this.#hasEnd) {
			this.#stream.write(Buffer.alloc(draw.size(100_000)));
		} else if (action < 6 && !this.#hasEnd) {
			this.#hasEnd = true;
			this.#stream.end(Buffer.alloc(draw.size(1000)), draw.chance(0.5) ? ["d", "e"] : []);
		} else if (action === 6) {
			throw new Error("a caller's error");
		}
	}

	onHead(): void {
		assert.equal(this.ends, 0, "a head after the last event");
		assert.equal(this.#hasHead, false, "a second head");
		this.#hasHead = true;
		this.act();
	}

	onData(bytes: Uint8Array): void {
		assert.equal(this.ends, 0, "data after the last event");
		assert.equal(this.#hasHead, true, "data before the head");
		this.#stream.consume(this.#draw.below(bytes.length + 1));
		this.act();
	}

	onEnd(): void {
		assert.equal(this.ends, 0, "an end after the last event");
		assert.equal(this.#hasHead, true, "an end before the head");
		this.act();
	}

	onDrain(): void {
		this.act();
	}

	onFinish(): void {
		this.ends++;
	}

	onReset(): void {
		this.ends++;
		if (this.#draw.chance(0.1)) {
			throw new Error("a caller's error");
		}
	}
}

/** A server that breaks no rule, for a client that has made a number of requests. */
class Session {
	readonly #draw: Draw;
	/** Streams whose responses have not begun, and those that have not ended. */
	#waiting: number[];
	#open: number[] = [];

	constructor(draw: Draw, requests: number) {
		this.#draw = draw;
		this.#waiting = Array.from({ length: requests }, (_, index) => index * 2 + 1);
	}

	frame(): Buffer {
		const draw = this.#draw;
		const kind = draw.below(12);
		if (kind < 3 && this.#waiting.length > 0) {
			return this.#head(draw.pick(this.#waiting));
		}
		if (kind < 8 && this.#open.length > 0) {
			const id = draw.pick(this.#open);
			return kind < 6 ? this.#data(id) : this.#end(id);
		}
		switch (kind) {
			case 8:
				return frame(frameType.windowUpdate, 0, 0, uint32(1 + draw.size(100_000)));
			case 9:
				return settingsFrame(
					[setting.initialWindowSize, draw.size(200_000)],
					[setting.headerTableSize, draw.size(5000)],
				);
			case 10:
				return frame(frameType.ping, 0, 0, draw.bytes(8));
			default:
				return frame(0x20 + draw.below(200), draw.below(256), draw.below(100), draw.bytes(9));
		}
	}

	#head(id: number): Buffer {
		const draw = this.#draw;
		if (draw.chance(0.2)) {
			return headers(id, [":status", "103"]);
		}
		this.#waiting = this.#waiting.filter((each) => each !== id);
		const isLast = draw.chance(0.3);
		if (!isLast) {
			this.#open.push(id);
		}
		return headers(id, [":status", draw.pick(["200", "404"]), "a", draw.pick(["b", "c"])], isLast);
	}

	#data(id: number): Buffer {
		return frame(frameType.data, 0, id, this.#draw.bytes(this.#draw.size(2000)));
	}

	#end(id: number): Buffer {
		const draw = this.#draw;
		this.#open = this.#open.filter((each) => each !== id);
		switch (draw.below(3)) {
			case 0:
				return frame(frameType.rstStream, 0, id, uint32(draw.below(15)));
			case 1:
				return headers(id, ["grpc-status", "0"], true);
			default:
				return frame(frameType.data, flag.endStream, id, draw.bytes(draw.size(100)));
		}
	}
}

/**
 * Sends a server's session whose frames are changed, reordered and cut anywhere, to a client that makes requests.
 *
 * @throws AssertionError if the connection does not end as it should, or a caller is not notified.
 */
export async function fuzzClient(seed: number): Promise<void> {
	const draw = new Draw(seed);
	const clock = new FakeClock();
	const [server, socket] = duplexPair();
	let received: Buffer = Buffer.alloc(0);
	server.on("data", (chunk: Buffer) => {
		received = Buffer.concat([received, chunk]);
	});
	server.on("error", () => {});
	const errors: unknown[] = [];
	const internalErrors: unknown[] = [];
	const connection = connectHttp2(socket, {
		clock,
		onHandlerError: (error) => errors.push(error),
		onInternalError: (error) => internalErrors.push(error),
		limits: { connectionWindowBytes: 10_000_000, streamWindowBytes: 1_000_000 },
	});
	const callers: RandomCaller[] = [];
	const call = () => {
		try {
			callers.push(new RandomCaller(draw, connection));
		} catch (error) {
			assert.match(String(error), /accepts no requests|a caller's error/);
		}
	};
	const requests = 1 + draw.below(12);
	for (let made = 0; made < requests; made++) {
		call();
	}
	const session = new Session(draw, callers.length);
	const frames = Array.from({ length: draw.size(150) }, () => session.frame());
	const isValid = draw.chance(0.3);
	if (!isValid) {
		mutate(draw, frames);
	}
	frames.unshift(settingsFrame(), frame(frameType.settings, flag.ack, 0));
	for (const piece of cut(draw, Buffer.concat(frames))) {
		server.write(piece);
		if (draw.chance(0.3)) {
			await new Promise((resolve) => setImmediate(resolve));
		}
		if (!isValid && draw.chance(0.05)) {
			call();
		}
	}
	await settle();
	if (draw.chance(0.5)) {
		void connection.close();
		await settle();
	}
	server.end();
	await settle();
	clock.advance(30_000);
	const { code, message } = await connection.closed;
	assert.ok(!isValid || message === "", `a valid session ends with ${code}: ${message}`);
	assert.deepEqual(internalErrors, [], "an internal error");
	const bytes = received.subarray(clientPreface.length);
	assert.equal(parseFrames(bytes).rest.length, 0, "the client has sent half of a frame");
	assert.equal(connection.activeStreams, 0, "requests are left");
	assert.equal(connection.unsentBytes, 0, "bytes are left");
	assert.deepEqual(
		errors.filter((error) => !(error instanceof Error && error.message === "a caller's error")),
		[],
		"other errors than those of callers",
	);
	for (const { ends } of callers) {
		assert.equal(ends, 1, "a caller's last event");
	}
	assert.equal(clock.nextTimerMs(), undefined, "a timer is left");
}
