import { Code, ConnectError, type Transport } from "@connectrpc/connect";
import { SchemaMixinService } from "@plinth/proto/gen/plinth/schema/v1/schema_mixin_service_pb.js";
import { withMessages } from "../registry/balanced-transport.ts";
import type { SimulatedProcess } from "./participants.fixture.ts";
import type { Lifetime } from "./server-lifetime.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

const watchDeletions = SchemaMixinService.method.watchImportedServiceDeletions.name;

/**
 * The transport by which a server calls the servers at an address, which is the name of their deployment. Messages are
 * delayed, reordered, lost in either direction, and delivered twice; streams break.
 */
export function networkTransport(
	sim: SimulationContext,
	from: SimulatedProcess,
	address: string,
): Transport {
	function pickServer(): SimulatedProcess & { readonly transport: Transport } {
		const servers = sim
			.serversAt(address)
			.filter((each) => each.transport !== undefined && !sim.splits.separates(from, each));
		const server = servers[sim.below(servers.length)];
		if (server?.transport === undefined) {
			throw unreachable();
		}
		const { lifetime, runtime, name, transport } = server;
		return { lifetime, runtime, name, address, transport };
	}
	return {
		async unary(method, _signal, timeoutMs, header, input) {
			const { lost, repeated } = sim.faults;
			async function deliver() {
				await sim.delay();
				const to = pickServer();
				if (to.lifetime.isStalled) {
					await to.lifetime.awake();
				}
				if (to.lifetime.isOver) {
					throw unreachable();
				}
				sim.trace.add(to.name, () => `<- ${from.name}: ${method.name}`);
				const handling = to.transport.unary(method, undefined, undefined, header, input);
				const response = await to.lifetime.observe(handling, unreachable);
				if (to.lifetime.isStalled) {
					await to.lifetime.awake();
				}
				await sim.delay();
				if (sim.splits.separates(from, to)) {
					throw unreachable();
				}
				return response;
			}
			if (sim.happens(repeated)) {
				void sim
					.wait(sim.random.next() * sim.pick([0, 1_000, 60_000]))
					.then(deliver)
					.catch(() => {});
			}
			return from.lifetime.within(
				timeLimited(from, timeoutMs, async () => {
					if (sim.happens(lost)) {
						await sim.delay();
						sim.trace.add(from.name, () => `request lost: ${method.name}`);
						throw unreachable();
					}
					const response = await deliver();
					if (sim.happens(lost)) {
						sim.trace.add(from.name, () => `response lost: ${method.name}`);
						throw unreachable();
					}
					return response;
				}),
			);
		},
		async stream(method, signal, _timeoutMs, header, input) {
			await sim.delay();
			if (method.name === watchDeletions && sim.happens(sim.faults.late)) {
				await sim.wait(sim.random.next() * 60_000);
			}
			const to = pickServer();
			const ends = new StreamEnd(to.lifetime, signal);
			const stop = sim.splits.onChange(() => {
				if (sim.splits.separates(from, to)) {
					ends.end();
				}
			});
			const opened = await to.lifetime.observe(
				to.transport.stream(method, ends.signal, undefined, header, input),
				unreachable,
			);
			async function* messages() {
				try {
					for await (const message of opened.message) {
						if (to.lifetime.isStalled) {
							await to.lifetime.awake();
						}
						await sim.delay();
						if (ends.signal.aborted || sim.happens(sim.faults.broken)) {
							throw unreachable();
						}
						yield message;
					}
				} finally {
					stop();
					ends.end();
				}
			}
			return withMessages(opened, messages());
		},
	};
}

/** Ends a stream with its server or its caller. */
class StreamEnd {
	readonly #controller = new AbortController();
	readonly #forget: () => void;

	constructor(to: Lifetime, caller: AbortSignal | undefined) {
		const end = () => this.#controller.abort();
		caller?.addEventListener("abort", end, { once: true });
		if (caller?.aborted) {
			// It has given up while the call was under way.
			end();
		}
		const forget = to.onEnd(end);
		this.#forget = () => {
			forget();
			caller?.removeEventListener("abort", end);
		};
	}

	get signal(): AbortSignal {
		return this.#controller.signal;
	}

	end(): void {
		this.#controller.abort();
		this.#forget();
	}
}

/** Rejects with DeadlineExceeded after the timeout, by the clock of the server. No timeout: never. */
function timeLimited<T>(
	{ runtime }: Pick<SimulatedProcess, "runtime">,
	timeoutMs: number | undefined,
	run: () => Promise<T>,
): Promise<T> {
	if (timeoutMs === undefined) {
		return run();
	}
	return new Promise((resolve, reject) => {
		const timer = runtime.clock.setTimer(timeoutMs, () =>
			reject(new ConnectError("the operation timed out", Code.DeadlineExceeded)),
		);
		run()
			.then(resolve, reject)
			.finally(() => timer.cancel());
	});
}

/** The failure of a call that got no response. */
function unreachable(): ConnectError {
	return new ConnectError("no server responds", Code.Unavailable);
}
