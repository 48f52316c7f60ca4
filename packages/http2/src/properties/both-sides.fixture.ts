import { strict as assert } from "node:assert";
import { duplexPair } from "node:stream";
import { FakeClock } from "@plinth/runtime/testing";
import { requestHead } from "../client/raw-server.fixture.ts";
import { connectHttp2 } from "../connect.ts";
import { errorCode } from "../error-code.ts";
import type {
	Http2ClientConnection,
	Http2ClientStream,
	Http2Limits,
	Http2Stream,
	ResponseHandler,
	StreamHandler,
} from "../http2.ts";
import { settle } from "../raw-client.fixture.ts";
import { serveHttp2 } from "../serve.ts";
import { Draw } from "./draw.fixture.ts";

/** Sends the body back, and returns its credit at once or some time later. */
class SlowEcho implements StreamHandler {
	readonly #stream: Http2Stream;
	readonly #later: (run: () => void) => void;

	constructor(stream: Http2Stream, later: (run: () => void) => void) {
		this.#stream = stream;
		this.#later = later;
		stream.respond(200, ["x-stream", `${stream.id}`]);
	}

	onData(bytes: Uint8Array): void {
		this.#stream.write(bytes);
		this.#later(() => this.#stream.consume(bytes.length));
	}

	onEnd(): void {
		this.#later(() => this.#stream.end(undefined, ["grpc-status", "0"]));
	}

	onReset(): void {}
}

/** A call that compares what it receives with what it has sent. */
class EchoCall implements ResponseHandler {
	readonly body: Buffer;
	readonly stream: Http2ClientStream;
	readonly #later: (run: () => void) => void;
	readonly #received: Buffer[] = [];
	#status = 0;
	#grpcStatus: string | undefined;
	/** Whether the call itself has reset it. */
	isCanceled = false;
	readonly ends: string[] = [];

	constructor(connection: Http2ClientConnection, body: Buffer, later: (run: () => void) => void) {
		this.body = body;
		this.#later = later;
		this.stream = connection.request(requestHead, this);
	}

	cancel(): void {
		this.isCanceled = true;
		this.stream.reset(errorCode.cancel);
	}

	/** Whether all of the echo was received. */
	get isComplete(): boolean {
		return (
			this.#status === 200 &&
			this.#grpcStatus === "0" &&
			Buffer.concat(this.#received).equals(this.body)
		);
	}

	onHead(status: number): void {
		this.#status = status;
	}

	onData(bytes: Uint8Array): void {
		this.#received.push(Buffer.from(bytes));
		this.#later(() => this.stream.consume(bytes.length));
	}

	onEnd([, value]: readonly string[]): void {
		this.#grpcStatus = value;
	}

	onFinish(): void {
		this.ends.push("finish");
	}

	onReset(code: number, origin: string): void {
		this.ends.push(`reset ${code} ${origin}`);
	}
}

/**
 * A client and a server of this package with random limits, whose calls are made, canceled and delayed at random, until
 * one of the two closes the connection in order, or the client at once. After that:
 *
 * - The server has refused no request: those beyond its limit have waited.
 * - Every call that was not canceled has all of its response, unless the client has ended the connection at once, or the
 *   server has announced its end before it has begun the call.
 * - Every call was notified of its end once; no bytes, streams or timers are left.
 */
export async function checkBothSides(seed: number): Promise<void> {
	const draw = new Draw(seed);
	const clock = new FakeClock();
	const [clientSocket, serverSocket] = duplexPair();
	const waiting: (() => void)[] = [];
	const later = (run: () => void) => {
		if (draw.chance(0.5)) {
			run();
		} else {
			waiting.push(run);
		}
	};
	const errors: unknown[] = [];
	const onHandlerError = (error: unknown) => errors.push(error);
	const onInternalError = onHandlerError;
	const windows = (): Partial<Http2Limits> => ({
		streamWindowBytes: draw.pick([1_000, 65_535, 300_000]),
		connectionWindowBytes: draw.pick([65_535, 1_000_000]),
	});
	const served = new Set<number>();
	const server = serveHttp2(
		serverSocket,
		{
			...{ clock, onHandlerError, onInternalError },
			limits: { ...windows(), maxConcurrentStreams: 1 + draw.below(4) },
		},
		(stream) => {
			served.add(stream.id);
			return new SlowEcho(stream, later);
		},
	);
	// The limit is known from the beginning: before it is, requests may be refused.
	await settle();
	let settings = false;
	const client = connectHttp2(clientSocket, {
		...{ clock, onHandlerError, onInternalError, limits: windows() },
		onSettings: () => {
			settings = true;
		},
	});
	await settle();
	assert.ok(settings, "the server's settings have not arrived");
	const calls: EchoCall[] = [];
	for (let step = draw.below(60); step > 0; step--) {
		await act(draw, client, calls, waiting, later);
	}
	const ending = draw.pick(["client", "client", "server", "destroyed"]);
	if (ending === "destroyed") {
		client.destroy();
	} else {
		void (ending === "server" ? server : client).close();
	}
	for (let turns = 0; turns < 2_000 && client.activeStreams > 0; turns++) {
		for (const run of waiting.splice(0)) {
			run();
		}
		await new Promise((resolve) => setImmediate(resolve));
	}
	await settle();
	clock.advance(10_000);
	await Promise.all([client.closed, server.closed]);
	assert.deepEqual(errors, []);
	assert.equal(server.counters.streamsRefused, 0, "requests were refused");
	for (const { ends, isCanceled, isComplete, stream } of calls) {
		assert.equal(ends.length, 1, `the last event of a call: ${ends}`);
		const isRefused = ends[0] === `reset ${errorCode.refusedStream} peer`;
		assert.ok(!(isRefused && served.has(stream.id)), "a call is refused that was served");
		const mayEnd = isCanceled || (ending === "server" && isRefused) || ending === "destroyed";
		assert.ok(mayEnd || isComplete, `a call is not complete: ${ends}`);
	}
	for (const { activeStreams, unsentBytes } of [client, server]) {
		assert.deepEqual([activeStreams, unsentBytes], [0, 0], "something is left");
	}
	assert.equal(clock.nextTimerMs(), undefined, "a timer is left");
}

async function act(
	draw: Draw,
	client: Http2ClientConnection,
	calls: EchoCall[],
	waiting: (() => void)[],
	later: (run: () => void) => void,
): Promise<void> {
	const action = draw.below(10);
	if (action < 4) {
		const body = draw.bytes(draw.chance(0.2) ? 0 : 1 + draw.size(3_000));
		const repeated = Buffer.concat(Array.from({ length: 1 + draw.below(20) }, () => body));
		const call = new EchoCall(client, repeated, later);
		calls.push(call);
		const middle = draw.below(repeated.length);
		call.stream.write(repeated.subarray(0, middle));
		later(() => call.isCanceled || call.stream.end(repeated.subarray(middle)));
	} else if (action === 4 && calls.length > 0) {
		const call = draw.pick(calls);
		if (call.ends.length === 0) {
			call.cancel();
		}
	} else if (action < 8) {
		waiting.splice(draw.below(waiting.length + 1), 1)[0]?.();
	} else {
		await new Promise((resolve) => setImmediate(resolve));
	}
}
