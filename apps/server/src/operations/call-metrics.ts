import type { Interceptor } from "@connectrpc/connect";
import type { Meter } from "@opentelemetry/api";
import type { Clock } from "@plinth/runtime";
import type { IncompleteMessages } from "../decoding/incomplete-messages.ts";
import type { CallGate, RefusedCall } from "../limits/call-gate.ts";
import type { Exchanges } from "../listener/exchanges.ts";
import type { RefusedFor } from "../listener/origin/origin-check.ts";
import type { HealthWatches } from "../services/health-watches.ts";
import { resultOf } from "./audit.ts";

/** Upper bounds of the buckets of latencies, in seconds. */
const latencyBuckets = [
	0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** An open stream, as metrics see it. */
interface OpenStream {
	readonly method: string;
	/** Since when its client has not taken what was handed to it, on the monotonic clock. */
	stalledSinceMs: number | undefined;
}

/** Measures the calls of a listener. */
export interface CallMetrics {
	readonly interceptor: Interceptor;
	/** Counts a call that the gate did not let in. */
	refused(call: RefusedCall): void;
	/** Counts a line of the audit that was left out: see `auditRefusals`. */
	readonly auditSuppressed: () => void;
	/** Counts a request that was refused before it began. */
	requestRefused(reason: RefusedFor): void;
	/** Reads the gate from now on. */
	observe(gate: Pick<CallGate, "state">): void;
	/** Counts an exchange that the server ended. */
	readonly cut: (reason: string) => void;
	/** Reads the watches of the health from now on. */
	observeHealth(watches: Pick<HealthWatches, "open">): void;
	/** Reads the exchanges from now on. */
	observeExchanges(exchanges: Pick<Exchanges, "pendingBytes">): void;
	/** Reads the incomplete messages from now on. */
	observeIncomplete(messages: Pick<IncompleteMessages, "bytes" | "waiting">): void;
}

/** Makes the instruments of calls: requests, latencies, streams and how far they lag. */
export function createCallMetrics(meter: Meter, clock: Clock): CallMetrics {
	const latency = meter.createHistogram("plinth.call.duration.seconds", {
		description: "How long calls took that are no streams",
		advice: { explicitBucketBoundaries: latencyBuckets },
	});
	const streamsEnded = meter.createCounter("plinth.streams.ended", {
		description: "Streams that have ended, by how",
	});
	const sent = meter.createCounter("plinth.stream.messages", {
		description: "Messages that were sent on streams",
	});
	const refusals = meter.createCounter("plinth.calls.refused", {
		description: "Calls that were refused before they were read, by why",
	});
	const requestRefusals = meter.createCounter("plinth.requests.refused", {
		description:
			"Requests that were refused before they began: for their Host, their Origin, or because too many wait",
	});
	const suppressedLines = meter.createCounter("plinth.audit.lines.suppressed", {
		description: "Lines of the audit on callers without a valid token that were left out",
	});
	const cuts = meter.createCounter("plinth.calls.cut", {
		description:
			"Calls and streams that the server ended because their client was too slow, by why",
	});
	const streams = new Set<OpenStream>();
	const methods = new Set<string>();

	meter
		.createObservableGauge("plinth.streams.open", { description: "Open streams, as watches are" })
		.addCallback((result) => {
			const open = new Map([...methods].map((method) => [method, 0]));
			for (const { method } of streams) {
				open.set(method, (open.get(method) ?? 0) + 1);
			}
			for (const [method, count] of open) {
				result.observe(count, { method });
			}
		});
	meter
		.createObservableGauge("plinth.stream.lag.seconds", {
			description: "For how long the slowest client of a stream has not taken what is ready for it",
		})
		.addCallback((result) => {
			const nowMs = clock.monotonic();
			const lags = new Map([...methods].map((method) => [method, 0]));
			for (const { method, stalledSinceMs = nowMs } of streams) {
				lags.set(method, Math.max(lags.get(method) ?? 0, nowMs - stalledSinceMs));
			}
			for (const [method, lagMs] of lags) {
				result.observe(lagMs / 1_000, { method });
			}
		});

	const interceptor: Interceptor = (next) => async (request) => {
		const method = `${request.service.typeName}/${request.method.name}`;
		const startMs = clock.monotonic();
		const ended = (code: string) => {
			if (request.stream) {
				streamsEnded.add(1, { method, code });
			} else {
				latency.record((clock.monotonic() - startMs) / 1_000, { method, code });
			}
		};
		try {
			const response = await next(request);
			if (!response.stream) {
				ended("ok");
				return response;
			}
			methods.add(method);
			return { ...response, message: measured(response.message, method, ended) };
		} catch (failure) {
			ended(resultOf(failure));
			throw failure;
		}
	};

	/** No generator: each costs as much per message as all the rest of a watch. */
	function measured<T>(
		messages: AsyncIterable<T>,
		method: string,
		ended: (code: string) => void,
	): AsyncIterable<T> {
		return {
			[Symbol.asyncIterator]() {
				const iterator = messages[Symbol.asyncIterator]();
				const stream: OpenStream = { method, stalledSinceMs: undefined };
				streams.add(stream);
				const end = (code: string) => {
					if (streams.delete(stream)) {
						ended(code);
					}
				};
				return {
					async next() {
						stream.stalledSinceMs = undefined;
						try {
							const result = await iterator.next();
							if (result.done) {
								end("ok");
							} else {
								sent.add(1, { method });
								stream.stalledSinceMs = clock.monotonic();
							}
							return result;
						} catch (failure) {
							end(resultOf(failure));
							throw failure;
						}
					},
					async return(value) {
						end("canceled");
						return (await iterator.return?.(value)) ?? { done: true, value };
					},
				};
			},
		};
	}

	return {
		interceptor,
		auditSuppressed: () => suppressedLines.add(1),
		requestRefused: (reason) => requestRefusals.add(1, { reason }),
		refused: ({ why }) => refusals.add(1, { why }),
		observe: (gate) => {
			meter
				.createObservableGauge("plinth.calls.in_flight", {
					description: "Calls whose response has not been read, excluding streams",
				})
				.addCallback((result) => result.observe(gate.state.calls));
		},
		cut: (why) => cuts.add(1, { why }),
		observeHealth: (watches) => {
			meter
				.createObservableGauge("plinth.health.watches", {
					description: "Open health watches, which count for no other limit",
				})
				.addCallback((result) => result.observe(watches.open));
		},
		observeIncomplete: (messages) => {
			meter
				.createObservableGauge("plinth.request.incomplete.bytes", {
					description: "Request bytes that were received, or are reserved, and not decoded yet",
				})
				.addCallback((result) => result.observe(messages.bytes));
			meter
				.createObservableGauge("plinth.requests.paused", {
					description: "Requests of which nothing is read because too many bytes are incomplete",
				})
				.addCallback((result) => result.observe(messages.waiting));
		},
		observeExchanges: (exchanges) => {
			meter
				.createObservableGauge("plinth.response.pending.bytes", {
					description: "Response bytes that clients have not read",
				})
				.addCallback((result) => result.observe(exchanges.pendingBytes));
		},
	};
}
