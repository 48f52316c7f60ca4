import type { BatchObservableResult, Meter, Observable } from "@opentelemetry/api";
import type { ControllerManager, ControllerState, QueueState } from "@plinth/controller";

/** Creates the instruments of controllers: queues, caches, reconciles, restarts and leases. */
export function observeControllers(meter: Meter, manager: Pick<ControllerManager, "state">): void {
	const gauge = (name: string, description: string) =>
		meter.createObservableGauge(name, { description });
	const counter = (name: string, description: string) =>
		meter.createObservableCounter(name, { description });
	const instruments = {
		lease: gauge("plinth.lease.held", "Whether this server holds the lease"),
		runs: gauge("plinth.controller.running", "Whether the controller runs on this server"),
		shards: gauge(
			"plinth.controller.shards",
			"Shards of the controller that this server works on, if it is sharded",
		),
		restarts: counter("plinth.controller.restarts", "Runs of the controller that failed"),
		queue: gauge("plinth.controller.queue.depth", "Keys in a queue, by state"),
		failing: gauge(
			"plinth.controller.queue.failing",
			"Keys in a queue that failed when they were processed last",
		),
		oldest: gauge(
			"plinth.controller.queue.oldest.seconds",
			"How long the oldest ready key has waited",
		),
		cached: gauge("plinth.controller.cache.size", "Resources in the cache, by type"),
		stillRunning: gauge(
			"plinth.controller.still_running",
			"Reconciles that have been running for too long, including overdue ones",
		),
		running: gauge(
			"plinth.controller.reconcile.running.seconds",
			"How long the oldest reconcile that has been running for too long has run",
		),
		overdue: gauge("plinth.controller.overdue", "Reconciles that have exceeded their time limit"),
		aborted: counter(
			"plinth.controller.reconciles.aborted",
			"Reconciles that were aborted because they exceeded their time limit",
		),
		undecodable: gauge(
			"plinth.controller.undecodable",
			"Cached resources that their type can't decode",
		),
		reconciles: counter("plinth.controller.reconciles", "Reconciles that have ended, by outcome"),
		time: counter("plinth.controller.reconcile.duration.seconds", "Time spent in reconciles"),
		longest: gauge("plinth.controller.reconcile.longest.seconds", "The longest reconcile"),
	};
	meter.addBatchObservableCallback((result) => {
		const { holdsLease, controllers } = manager.state();
		if (holdsLease !== undefined) {
			result.observe(instruments.lease, Number(holdsLease), { lease: "controllers" });
		}
		for (const controller of controllers) {
			observeOne(result, instruments, controller);
		}
	}, Object.values(instruments));
}

function observeOne(
	result: BatchObservableResult,
	instruments: Readonly<Record<string, Observable>>,
	state: ControllerState,
): void {
	const controller = state.name;
	const observe = (name: string, value: number, labels: Record<string, string> = {}) => {
		const instrument = instruments[name];
		if (instrument !== undefined) {
			result.observe(instrument, value, { controller, ...labels });
		}
	};
	observe("runs", Number(state.phase === "running"));
	observe("restarts", state.restarts);
	observe("reconciles", state.reconciles.succeeded, { outcome: "succeeded" });
	observe("reconciles", state.reconciles.failed, { outcome: "failed" });
	observe("time", state.reconciles.totalMs / 1_000);
	observe("longest", state.reconciles.longestMs / 1_000);
	const { run } = state;
	observe("aborted", state.reconciles.overdue);
	observe("stillRunning", (run?.stillRunning.length ?? 0) + state.orphaned.length);
	observe("running", (run?.stillRunning[0]?.runningMs ?? 0) / 1_000);
	observe("undecodable", run?.undecodable.count ?? 0);
	observe("overdue", (run?.overdue.length ?? 0) + state.orphaned.length);
	if (run !== undefined) {
		observeQueue(observe, "requests", run.requests);
		for (const [name, queue] of Object.entries(run.mappings)) {
			observeQueue(observe, name, queue);
		}
		if (run.shards !== undefined) {
			observe("shards", run.shards.open.length);
		}
		for (const { type, size } of run.cached) {
			observe("cached", size, { type });
		}
	}
}

function observeQueue(
	observe: (name: string, value: number, labels: Record<string, string>) => void,
	queue: string,
	{ live, background, delayed, active, held, failing, oldest }: QueueState,
): void {
	for (const [state, keys] of Object.entries({ live, background, delayed, active, held })) {
		observe("queue", keys, { queue, state });
	}
	observe("failing", failing, { queue });
	observe("oldest", (oldest?.waitingMs ?? 0) / 1_000, { queue });
}
