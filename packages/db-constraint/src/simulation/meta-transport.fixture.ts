import type { Transport } from "@connectrpc/connect";
import { timeLimited, unreachable } from "./network.fixture.ts";
import type { SimulatedMetaServer, SimulatedServer } from "./participants.fixture.ts";
import type { SimulationContext } from "./simulation-context.fixture.ts";

/**
 * The transport by which a server calls the meta deployment: messages are delayed, lost in either
 * direction, and delivered twice; watches break.
 */
export function metaTransport(sim: SimulationContext, from: SimulatedServer): Transport {
	function pickServer(): SimulatedMetaServer {
		const { servers } = sim.meta;
		const server = servers[sim.below(servers.length)];
		if (server === undefined) {
			throw unreachable();
		}
		return server;
	}
	return {
		async unary(method, _signal, timeoutMs, header, input) {
			const { lost, repeated } = sim.faults;
			async function deliver() {
				await sim.delay();
				const to = pickServer();
				sim.trace.add(sim.meta.name, () => `<- ${from.name}: ${method.name}`);
				const handling = to.transport.unary(method, undefined, undefined, header, input);
				const response = await to.lifetime.observe(handling, unreachable);
				await sim.delay();
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
						throw unreachable();
					}
					const response = await deliver();
					if (sim.happens(lost)) {
						throw unreachable();
					}
					return response;
				}),
			);
		},
		async stream(method, signal, _timeoutMs, header, input) {
			await sim.delay();
			const to = pickServer();
			const ended = new AbortController();
			const end = () => ended.abort();
			signal?.addEventListener("abort", end, { once: true });
			const forget = to.lifetime.onEnd(end);
			const opened = await to.lifetime.observe(
				to.transport.stream(method, ended.signal, undefined, header, input),
				unreachable,
			);
			async function* messages() {
				try {
					for await (const message of opened.message) {
						await sim.delay();
						if (ended.signal.aborted || sim.happens(sim.faults.broken)) {
							throw unreachable();
						}
						yield message;
					}
				} finally {
					ended.abort();
					forget();
					signal?.removeEventListener("abort", end);
				}
			}
			return { ...opened, message: messages() };
		},
	};
}
