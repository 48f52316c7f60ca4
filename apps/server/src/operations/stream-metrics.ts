import type { Meter, ObservableResult } from "@opentelemetry/api";
import type { ObservedCall } from "@plinth/rpc-server";
import type { Clock } from "@plinth/runtime";
import { resultOf } from "./audit.ts";

/** The streams of one method. */
interface MethodStreams {
	readonly method: string;
	/** How many messages were sent. It is read when metrics are collected: a counter would cost as much as the message. */
	messages: number;
	readonly open: Set<OpenStream>;
}

/** An open stream, as metrics see it. */
class OpenStream implements ObservedCall {
	readonly #streams: MethodStreams;
	readonly #clock: Clock;
	readonly #ended: (code: string) => void;
	/** Since when messages wait for the client, on the monotonic clock; `undefined` while it is ready for the next one. */
	stalledSinceMs: number | undefined;

	constructor(streams: MethodStreams, clock: Clock, ended: (code: string) => void) {
		this.#streams = streams;
		this.#clock = clock;
		this.#ended = ended;
		streams.open.add(this);
	}

	sent(): void {
		this.#streams.messages += 1;
		this.stalledSinceMs ??= this.#clock.monotonic();
	}

	ready(): void {
		this.stalledSinceMs = undefined;
	}

	ended(failure: unknown): void {
		this.#streams.open.delete(this);
		this.#ended(failure === undefined ? "ok" : resultOf(failure));
	}
}

/** Measures the open streams of a listener: how many there are, what they send and how far they lag. */
export class StreamMetrics {
	readonly #clock: Clock;
	/** Methods are kept after their last stream has ended, so that their gauges return to 0. */
	readonly #methods = new Map<string, MethodStreams>();

	constructor(meter: Meter, clock: Clock) {
		this.#clock = clock;
		meter
			.createObservableCounter("plinth.stream.messages", {
				description: "Messages that were sent on streams",
			})
			.addCallback((result) => this.#observe(result, ({ messages }) => messages));
		meter
			.createObservableGauge("plinth.streams.open", {
				description: "Open streams, such as watches",
			})
			.addCallback((result) => this.#observe(result, ({ open }) => open.size));
		meter
			.createObservableGauge("plinth.stream.lag.seconds", {
				description: "How long the slowest client of a stream has left the latest message unread",
			})
			.addCallback((result) => this.#observe(result, (streams) => this.#lagMs(streams) / 1_000));
	}

	/**
	 * Measures one stream.
	 *
	 * @param ended called once with the result, when the stream has ended.
	 */
	begin(method: string, ended: (code: string) => void): ObservedCall {
		let streams = this.#methods.get(method);
		if (streams === undefined) {
			streams = { method, messages: 0, open: new Set() };
			this.#methods.set(method, streams);
		}
		return new OpenStream(streams, this.#clock, ended);
	}

	#observe(result: ObservableResult, figureOf: (streams: MethodStreams) => number): void {
		for (const streams of this.#methods.values()) {
			result.observe(figureOf(streams), { method: streams.method });
		}
	}

	#lagMs({ open }: MethodStreams): number {
		const nowMs = this.#clock.monotonic();
		let lagMs = 0;
		for (const { stalledSinceMs = nowMs } of open) {
			lagMs = Math.max(lagMs, nowMs - stalledSinceMs);
		}
		return lagMs;
	}
}
