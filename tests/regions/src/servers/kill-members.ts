import { setTimeout } from "node:timers/promises";
import type { Random } from "@plinth/runtime";
import type { EtcdProcess } from "@plinth/storage-etcd/testing";

/** Kills members of an etcd, one at a time, until the signal aborts. Then all run. Returns how many it has killed. */
export async function killMembers(
	members: readonly EtcdProcess[],
	random: Random,
	signal: AbortSignal,
): Promise<number> {
	let killed = 0;
	const pause = (leastMs: number, mostMs: number) =>
		setTimeout(leastMs + random.next() * (mostMs - leastMs), undefined, { signal }).catch(() => {});
	for (;;) {
		await pause(3_000, 9_000);
		const member = members[Math.floor(random.next() * members.length)];
		if (signal.aborted || member === undefined) {
			return killed;
		}
		killed += 1;
		await member.kill();
		await pause(0, 3_000);
		await member.restart();
	}
}
