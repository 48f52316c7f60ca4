import type { Transport } from "@connectrpc/connect";
import type { Life } from "./life.ts";
import { timeLimited, unreachable } from "./network.ts";
import type { Server } from "./server.ts";
import type { World } from "./world.ts";

/** Whoever answers calls of the resource API. */
interface Answering {
	readonly life: Life;
	readonly transport: Transport;
}

/**
 * How a server calls the meta deployment: messages are late, get lost on either way, and arrive twice;
 * watches break.
 */
export function wireToMeta(world: World, from: Server): Transport {
	function someone(): Answering {
		const { servers } = world.meta;
		const server = servers[world.below(servers.length)];
		if (server === undefined) {
			throw unreachable();
		}
		return server;
	}
	return {
		async unary(method, _signal, timeoutMs, header, input) {
			const { lost, repeated } = world.weather;
			async function arrive() {
				await world.someTime();
				const to = someone();
				world.story.tell(world.meta.name, () => `<- ${from.name}: ${method.name}`);
				const answering = to.transport.unary(method, undefined, undefined, header, input);
				const answered = await to.life.seenFrom(answering, unreachable);
				await world.someTime();
				return answered;
			}
			if (world.happens(repeated)) {
				void world
					.pass(world.random.next() * world.pick([0, 1_000, 60_000]))
					.then(arrive)
					.catch(() => {});
			}
			return from.life.within(
				timeLimited(from, timeoutMs, async () => {
					if (world.happens(lost)) {
						await world.someTime();
						throw unreachable();
					}
					const answered = await arrive();
					if (world.happens(lost)) {
						throw unreachable();
					}
					return answered;
				}),
			);
		},
		async stream(method, signal, _timeoutMs, header, input) {
			await world.someTime();
			const to = someone();
			const ended = new AbortController();
			const end = () => ended.abort();
			signal?.addEventListener("abort", end, { once: true });
			const forget = to.life.onEnd(end);
			const opened = await to.life.seenFrom(
				to.transport.stream(method, ended.signal, undefined, header, input),
				unreachable,
			);
			async function* messages() {
				try {
					for await (const message of opened.message) {
						await world.someTime();
						if (ended.signal.aborted || world.happens(world.weather.broken)) {
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
