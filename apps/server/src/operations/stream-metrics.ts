import type { Counter, Meter, ObservableResult } from "@opentelemetry/api";
import type { ObservedCall } from "@plinth/rpc-server";
import type { Clock } from "@plinth/runtime";
import { resultOf } from "./audit.ts";

/** An open stream, as metrics see it. */
interface OpenStream {
	readonly method: string;
	/** Since when messages wait for the client, on the monotonic clock; `undefined` while it is ready for the next one. */
	stalledSinceMs: number | undefined;
}

/** Measures the open streams of a listener: how many there are, what they send and how far they lag. */
export class StreamMetrics {
	readonly #clock: Clock;
	readonly #messages: Counter;
	readonly #streams = new Set<OpenStream>();
	/** The methods that have had a stream, so that their gauges return to 0. */
	readonly #methods = new Set<string>();

	constructor(meter: Meter, clock: Clock) {
		this.#clock = clock;
		this.#messages = meter.createCounter("plinth.stream.messages", {
			description: "Messages that were sent on streams",
		});
		meter
			.createObservableGauge("plinth.streams.open", {
				description: "Open streams, such as watches",
			})
			.addCallback((result) => this.#observeOpen(result));
		meter
			.createObservableGauge("plinth.stream.lag.seconds", {
				description: "How long the slowest client of a stream has not read the latest message",
			})
			.addCallback((result) => this.#observeLag(result));
	}

	/**
	 * Measures one stream.
	 *
	 * @param ended called once with the result, when the stream has ended.
	 */
	begin(method: string, ended: (code: string) => void): ObservedCall {
		this.#methods.add(method);
		const stream: OpenStream = { method, stalledSinceMs: undefined };
		this.#streams.add(stream);
		return {
			sent: () => {
				this.#messages.add(1, { method });
				stream.stalledSinceMs ??= this.#clock.monotonic();
			},
			ready: () => {
				stream.stalledSinceMs = undefined;
			},
			ended: (failure) => {
				this.#streams.delete(stream);
				ended(failure === undefined ? "ok" : resultOf(failure));
			},
		};
	}

	#observeOpen(result: ObservableResult): void {
		const open = new Map([...this.#methods].map((method) => [method, 0]));
		for (const { method } of this.#streams) {
			open.set(method, (open.get(method) ?? 0) + 1);
		}
		for (const [method, count] of open) {
			result.observe(count, { method });
		}
	}

	#observeLag(result: ObservableResult): void {
		const nowMs = this.#clock.monotonic();
		const lags = new Map([...this.#methods].map((method) => [method, 0]));
		for (const { method, stalledSinceMs = nowMs } of this.#streams) {
			lags.set(method, Math.max(lags.get(method) ?? 0, nowMs - stalledSinceMs));
		}
		for (const [method, lagMs] of lags) {
			result.observe(lagMs / 1_000, { method });
		}
	}
}
