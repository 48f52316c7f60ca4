import type { DescMethod } from "@bufbuild/protobuf";
import type { CallObserver } from "@plinth/rpc-server";
import type { Clock } from "@plinth/runtime";
import type { IncompleteMessages } from "../decoding/incomplete-messages.ts";
import type { CallGate, RefusedCall } from "../limits/call-gate.ts";
import type { Exchanges } from "../listener/exchanges.ts";
import type { RefusedFor } from "../listener/origin/origin-check.ts";
import type { HealthWatches } from "../services/health-watches.ts";
import { resultOf } from "./audit.ts";
import type { HistogramSeries } from "./bound-histogram.ts";
import type { Metrics } from "./metrics.ts";
import { StreamMetrics } from "./stream-metrics.ts";

/** Upper bounds of the buckets of latencies, in seconds. */
const latencyBuckets = [
	0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** What creates the instruments of calls. */
export type CallInstruments = Pick<Metrics, "meter" | "histogram">;

/** Measures the calls of a listener. */
export interface CallMetrics {
	readonly observer: CallObserver;
	/** Counts a call that the gate refused. */
	refused(call: RefusedCall): void;
	/** Counts an audit line that was suppressed: see `auditRefusals`. */
	readonly auditSuppressed: () => void;
	/** Counts a request that was refused before it began. */
	requestRefused(reason: RefusedFor): void;
	/** Observes the calls in flight. */
	observe(gate: Pick<CallGate, "state">): void;
	/** Counts an exchange that the server ended. */
	readonly cut: (reason: string) => void;
	/**
	 * Counts a watch of a set.
	 *
	 * @returns a function to be called once when the watch has ended, with its failure if there is one.
	 */
	watchBegan(): (failure: unknown) => void;
	/** Observes the health watches. */
	observeHealth(watches: Pick<HealthWatches, "open">): void;
	/** Observes the bytes of responses. */
	observeExchanges(exchanges: Pick<Exchanges, "pendingBytes">): void;
	/** Observes the bytes of requests. */
	observeIncomplete(messages: Pick<IncompleteMessages, "bytes" | "waiting">): void;
}

/** Creates the instruments of calls: requests, latencies and streams. */
export function createCallMetrics(metrics: CallInstruments, clock: Clock): CallMetrics {
	const { meter } = metrics;
	const counter = (name: string, description: string) => meter.createCounter(name, { description });
	const gauge = (name: string, description: string, read: () => number) =>
		meter
			.createObservableGauge(name, { description })
			.addCallback((result) => result.observe(read()));
	const refusals = counter(
		"plinth.calls.refused",
		"Calls that were refused before their request was read, by reason",
	);
	const requestRefusals = counter(
		"plinth.requests.refused",
		"Requests that were refused before they began: for their Host, their Origin, or because too many wait",
	);
	const suppressedLines = counter(
		"plinth.audit.lines.suppressed",
		"Audit lines about callers without a valid token that were suppressed",
	);
	const cuts = counter(
		"plinth.calls.cut",
		"Calls and streams that the server ended because their client was too slow, by reason",
	);
	return {
		observer: measureCalls(metrics, clock),
		watchBegan: measureWatchesOfSets(meter),
		auditSuppressed: () => suppressedLines.add(1),
		requestRefused: (reason) => requestRefusals.add(1, { reason }),
		refused: ({ why }) => refusals.add(1, { why }),
		cut: (why) => cuts.add(1, { why }),
		observe: (gate) => {
			gauge(
				"plinth.calls.in_flight",
				"Calls whose response has not been read, excluding streams",
				() => gate.state.calls,
			);
		},
		observeHealth: (watches) => {
			gauge(
				"plinth.health.watches",
				"Open health watches, which count towards no other limit",
				() => watches.open,
			);
		},
		observeIncomplete: (messages) => {
			gauge(
				"plinth.request.incomplete.bytes",
				"Request bytes that were received or are reserved, and are not decoded yet",
				() => messages.bytes,
			);
			gauge(
				"plinth.requests.paused",
				"Requests that are not read because too many bytes are incomplete",
				() => messages.waiting,
			);
		},
		observeExchanges: (exchanges) => {
			gauge(
				"plinth.response.pending.bytes",
				"Response bytes that clients have not read",
				() => exchanges.pendingBytes,
			);
		},
	};
}

/** Measures the watches of sets. */
function measureWatchesOfSets(meter: CallInstruments["meter"]): CallMetrics["watchBegan"] {
	let open = 0;
	meter
		.createObservableGauge("plinth.watch_sets.watches", {
			description: "Open watches of sets, of which each set is one stream",
		})
		.addCallback((result) => result.observe(open));
	const ended = meter.createCounter("plinth.watch_sets.watches.ended", {
		description: "Watches of sets that have ended, by result",
	});
	return () => {
		open += 1;
		return (failure) => {
			open -= 1;
			ended.add(1, { code: failure === undefined ? "ok" : resultOf(failure) });
		};
	};
}

/** What is measured of the calls of one method. */
interface MethodMetrics {
	readonly method: string;
	/** The latencies of the calls that ended with a code. */
	readonly latencies: (code: string) => HistogramSeries;
}

/** Measures how long calls take, and how streams end. */
function measureCalls({ meter, histogram }: CallInstruments, clock: Clock): CallObserver {
	const latency = histogram({
		name: "plinth.call.duration.seconds",
		description: "How long calls took, excluding streams",
		boundaries: latencyBuckets,
	});
	const streamsEnded = meter.createCounter("plinth.streams.ended", {
		description: "Streams that have ended, by result",
	});
	const streams = new StreamMetrics(meter, clock);
	const measured = new Map<DescMethod, MethodMetrics>();
	const metricsOf = (called: DescMethod): MethodMetrics => {
		let metrics = measured.get(called);
		if (metrics === undefined) {
			const method = `${called.parent.typeName}/${called.name}`;
			metrics = { method, latencies: latency.seriesBy("code", { method }) };
			measured.set(called, metrics);
		}
		return metrics;
	};
	return {
		started({ method: called }) {
			const { method, latencies } = metricsOf(called);
			if (called.methodKind !== "unary") {
				return streams.begin(method, (code) => streamsEnded.add(1, { method, code }));
			}
			const startMs = clock.monotonic();
			return {
				ended(failure) {
					const code = failure === undefined ? "ok" : resultOf(failure);
					latencies(code).record((clock.monotonic() - startMs) / 1_000);
				},
			};
		},
	};
}
