import { setTimeout } from "node:timers/promises";
import type { Regions } from "@plinth/example-regions/regions";
import type { ServerProcess } from "@plinth/example-regions/server-process";
import type { Random } from "@plinth/runtime";
import type { SendNotifier } from "../clients/send-notifier.ts";

/** The number of kills of each server, by name. */
export type Kills = Readonly<Record<string, number>>;

/** The typical duration of a call and its effects: a kill follows within this time, in milliseconds. */
const callDurationMs = 20;

/**
 * Repeatedly kills a server, mostly just after a client has sent a write or a deletion, and restarts it. Finally
 * all servers are started. A server may be killed before it is ready, and several may be down at once.
 *
 * @param mayKill - whether a server may be killed now. Default: always.
 */
export async function killServers(
	regions: Regions,
	notifier: SendNotifier,
	seconds: number,
	random: Random,
	mayKill: (server: ServerProcess) => Promise<boolean> = async () => true,
): Promise<Kills> {
	const endMs = performance.now() + seconds * 1000;
	const kills: Record<string, number> = {};
	const pause = (leastMs: number, mostMs: number) =>
		setTimeout(leastMs + random.next() * (mostMs - leastMs));
	const down = new Map<string, Promise<void>>();
	while (performance.now() < endMs) {
		await pause(2000, 7000);
		const sent = random.next() < 0.5 ? "write" : "delete";
		await Promise.race([notifier.next(sent), setTimeout(1000)]);
		await pause(0, callDurationMs);
		const up = [...regions.servers.values()].filter(({ name }) => !down.has(name));
		const server = up[Math.floor(random.next() * up.length)];
		const mayBeKilled = server !== undefined && (await mayKill(server));
		if (!mayBeKilled || performance.now() >= endMs) {
			continue;
		}
		const { name } = server;
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
 * Mostly short, sometimes longer than the timeout of calls between servers, and rarely longer than the 30 s after
 * which tentative sources are queried and owners are considered lost.
 */
function drawDownMs(random: Random): number {
	const [drawn, share] = [random.next(), random.next()];
	if (drawn < 0.7) {
		return share * 2000;
	}
	return drawn < 0.92 ? 4000 + share * 8000 : 35_000 + share * 10_000;
}
