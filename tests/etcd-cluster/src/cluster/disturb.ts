import { setTimeout } from "node:timers/promises";
import type { Random } from "@plinth/runtime";
import type { Cluster } from "./cluster.ts";

/** The number of injected faults of each kind. */
export interface FaultCounts {
	membersKilled: number;
	membersStopped: number;
	/** Two of the members at a time, so that there is no quorum. */
	quorumsStopped: number;
	serversKilled: number;
	/** For longer than the time to live of the lease of singletons. */
	serversStopped: number;
}

/** The election timeout of etcd, in milliseconds: its default. */
const electionTimeoutMs = 1000;
/** The time of the lease of singletons, in milliseconds. */
const leaseMs = 10_000;

/** Kills, stops and starts members and servers at random for some time, and leaves all of them running. */
export async function disturb(
	{ members, servers }: Cluster,
	seconds: number,
	random: { readonly members: Random; readonly servers: Random },
): Promise<FaultCounts> {
	const counts: FaultCounts = {
		membersKilled: 0,
		membersStopped: 0,
		quorumsStopped: 0,
		serversKilled: 0,
		serversStopped: 0,
	};
	const endMs = performance.now() + seconds * 1000;
	const over = () => performance.now() >= endMs;
	const disturbMembers = async () => {
		const between = (least: number, most: number) => pause(random.members, least, most);
		for (; !over(); await between(500, 3000)) {
			const [one, other] = draw(members, random.members);
			const drawn = random.members.next();
			if (drawn < 0.45) {
				counts.membersKilled += 1;
				await one.kill();
				await between(0, 2500);
				await one.restart();
				continue;
			}
			const stopped = drawn < 0.85 ? [one] : [one, other];
			counts[stopped.length === 1 ? "membersStopped" : "quorumsStopped"] += 1;
			for (const member of stopped) {
				await member.suspend();
			}
			await between(1.5 * electionTimeoutMs, 5 * electionTimeoutMs);
			for (const member of stopped) {
				member.resume();
			}
		}
	};
	const disturbServers = async () => {
		const between = (least: number, most: number) => pause(random.servers, least, most);
		for (; !over(); await between(1500, 6000)) {
			const [server] = draw(servers, random.servers);
			if (random.servers.next() < 0.85) {
				counts.serversKilled += 1;
				await server.kill();
				await between(0, 2500);
				await server.start();
			} else {
				counts.serversStopped += 1;
				await server.suspend();
				await between(1.1 * leaseMs, 1.5 * leaseMs);
				server.resume();
			}
		}
	};
	await Promise.all([disturbMembers(), disturbServers()]);
	return counts;
}

function pause(random: Random, leastMs: number, mostMs: number): Promise<void> {
	return setTimeout(leastMs + random.next() * (mostMs - leastMs));
}

/** Two of several, drawn. */
function draw<T>(from: readonly T[], random: Random): readonly [T, T] {
	const at = Math.floor(random.next() * from.length);
	const [one, other] = [from[at], from[(at + 1) % from.length]];
	if (one === undefined || other === undefined) {
		throw new RangeError("there is nothing to disturb");
	}
	return [one, other];
}
