import { setTimeout } from "node:timers/promises";
import type { Regions } from "@plinth/example-regions/regions";
import type { Random } from "@plinth/runtime";
import type { Moments } from "../clients/moments.ts";

/** How often each server was killed, by its name. */
export type Kills = Readonly<Record<string, number>>;

/** For how long calls, and what follows from them, are under way: a kill comes within that time, in milliseconds. */
const underWayMs = 20;

/**
 * Kills a server, most often just after a client has written or deleted something, and starts it again, time after time, and leaves all of them started.
 * One may be killed before it is ready, and several may be down together.
 */
export async function disturb(
	regions: Regions,
	moments: Moments,
	seconds: number,
	random: Random,
): Promise<Kills> {
	const endMs = performance.now() + seconds * 1000;
	const kills: Record<string, number> = {};
	const pause = (leastMs: number, mostMs: number) =>
		setTimeout(leastMs + random.next() * (mostMs - leastMs));
	const down = new Map<string, Promise<void>>();
	while (performance.now() < endMs) {
		await pause(2000, 7000);
		const moment = random.next() < 0.5 ? "write" : "delete";
		await Promise.race([moments.next(moment), setTimeout(1000)]);
		await pause(0, underWayMs);
		const up = [...regions.servers.values()].filter(({ plan }) => !down.has(plan.name));
		const server = up[Math.floor(random.next() * up.length)];
		if (server === undefined || performance.now() >= endMs) {
			continue;
		}
		const { name } = server.plan;
		kills[name] = (kills[name] ?? 0) + 1;
		const downMs = drawDownMs(random);
		const back = async () => {
			await server.stop("SIGKILL");
			await setTimeout(downMs);
			server.start();
			down.delete(name);
		};
		down.set(name, back());
	}
	await Promise.all(down.values());
	return kills;
}

/**
 * Briefly most of the time, now and then for longer than a call of a server waits, and rarely for longer than
 * the half minute after which tentative sources are asked about and owners that are missing let go of.
 */
function drawDownMs(random: Random): number {
	const [drawn, share] = [random.next(), random.next()];
	if (drawn < 0.7) {
		return share * 2000;
	}
	return drawn < 0.92 ? 4000 + share * 8000 : 35_000 + share * 10_000;
}
