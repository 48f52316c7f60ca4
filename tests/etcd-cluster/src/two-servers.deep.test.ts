import { describeWith } from "@plinth/test-support";
import { afterAll, beforeAll, expect, it } from "vitest";
import { effectWhere } from "./clients/effects.ts";
import type { Life } from "./clients/life.ts";
import { perform, textOf } from "./clients/perform.ts";
import { type Cluster, startCluster } from "./cluster/cluster.ts";
import { readEtcdRecord } from "./cluster/etcd-record.ts";
import { otherServer, type Pair, pairOf, writeTasks } from "./cluster/pair.ts";
import { leaseProblems } from "./history/check-leases.ts";
import { Presence, Register, Task } from "./module/types.ts";

/** How long etcd keeps the lease of a holder that is gone, and how late it may notice, in seconds. */
const leaseSeconds = 10;
/** A loaded machine may take longer than the lease alone. */
const slackSeconds = 180;

describeWith("etcd")("two servers on one etcd", () => {
	let cluster: Cluster;
	let pair: Pair;
	beforeAll(async () => {
		cluster = await startCluster({ members: 1, servers: 2 });
		pair = await pairOf(cluster);
	});
	afterAll(() => cluster?.dispose());

	it("send a watch on one server what is written on the other", async () => {
		const [writer, reader] = pair.lives;
		const texts: string[] = [];
		for await (const { event } of reader.client.watchList({ type: Register.type })) {
			if (event.case === "upsert") {
				texts.push(textOf(event.value.resource));
			} else {
				await perform(writer, "r", { kind: "put", text: `text-${texts.length}` }, true);
				await perform(writer, "r", { kind: "put", text: "last" }, true);
			}
			if (texts.at(-1) === "last") {
				break;
			}
		}
		expect(texts).toEqual(["text-0", "last"]);
	});

	it("both run the controllers of each server, and one of them those that are single", async () => {
		await writeTasks(pair.lives[0], ["", "", ""]);
		const processes = cluster.servers.map(({ pid }) => pid);
		const expected = [0, 1, 2].flatMap((task) => processes.map((pid) => `task-${task}-${pid}`));
		expect(await presencesUpTo(pair.lives[1], expected.length)).toEqual(expected.toSorted());
		const { client } = pair.lives[0];
		const { process } = await effectWhere(client, ({ tasks }) => tasks === 3);
		const { effects, leases } = await readEtcdRecord(cluster);
		expect(processes).toContain(process);
		expect(new Set(effects.map((each) => each.process))).toEqual(new Set([process]));
		const holds = leases.filter(({ lease }) => lease === "controllers");
		expect(holds.map((each) => each.kind === "put" && each.process)).toEqual([process]);
	});

	it("share the work of those that are sharded", async () => {
		await writeTasks(
			pair.lives[0],
			Array.from({ length: 20 }, () => ""),
		);
		const processes = cluster.servers.map(({ pid }) => String(pid)).toSorted();
		const shares = await sharesWhere(pair.lives[1], (each) => new Set(each.values()).size === 2);
		expect([...new Set(shares.values())].toSorted()).toEqual(processes);
		const record = await readEtcdRecord(cluster);
		const held = record.leases.map(({ lease }) => lease);
		const shards = new Set(held.filter((lease) => lease.startsWith("controllers-shares-shard-")));
		expect(shards.size).toBe(16);
		// The effects are those of a singleton.
		const problems = [...shards].map((lease) => leaseProblems({ ...record, effects: [] }, lease));
		expect(problems.flat()).toEqual([]);
	});

	it("move them when the one that runs them is killed, within the time of the lease, to a cache that lacks nothing", async () => {
		const holder = pair.serverOf((await effectWhere(pair.lives[0].client, () => true)).process);
		const other = otherServer(cluster, holder);
		const life = pair.lifeOf(other);
		const old = holder.pid;
		const tasks = Array.from({ length: 20 }, () => "");
		// The last ones are written at the one that is killed, just before that.
		await writeTasks(pair.lifeOf(holder), tasks);
		const killedMs = performance.now();
		await holder.kill();
		const first = await effectWhere(life.client, ({ process }) => process === other.pid);
		const seconds = (performance.now() - killedMs) / 1000;
		console.log(`the singletons moved ${seconds.toFixed(1)} s after the kill`);
		expect(seconds).toBeLessThan(leaseSeconds + slackSeconds);
		expect(first.tasks).toBe(tasks.length);
		const record = await readEtcdRecord(cluster);
		const holds = record.leases.filter(({ lease }) => lease === "controllers");
		expect(holds.map((each) => (each.kind === "put" ? each.process : "ended"))).toEqual([
			old,
			"ended",
			other.pid,
		]);
		expect(leaseProblems(record, "controllers")).toEqual([]);
		// All shards are its own as well.
		await sharesWhere(life, (shares) =>
			[...shares.values()].every((process) => process === String(other.pid)),
		);
	});
});

/** Who has the shard of each task, by name, once all tasks have said so and the condition holds. */
async function sharesWhere(
	{ client }: Life,
	condition: (shares: ReadonlyMap<string, string>) => boolean,
): Promise<ReadonlyMap<string, string>> {
	const shares = new Map<string, string>();
	const request = { type: Task.type };
	let isWhole = false;
	for await (const { event } of client.watchList(request)) {
		if (event.case === "upsert") {
			const { id, status } = event.value.resource ?? {};
			shares.set(id?.name ?? "", status?.shares?.conditions[0]?.message ?? "");
		}
		isWhole ||= event.case === "endOfSnapshot";
		if (isWhole && ![...shares.values()].includes("") && condition(shares)) {
			break;
		}
	}
	return shares;
}

/** The names of what the controllers of each server wrote, once there are as many. */
async function presencesUpTo({ client }: Life, count: number): Promise<readonly string[]> {
	const names = new Set<string>();
	for await (const { event } of client.watchList({ type: Presence.type })) {
		if (event.case === "upsert") {
			names.add(event.value.resource?.id?.name ?? "");
		}
		if (names.size === count) {
			break;
		}
	}
	return [...names].sort();
}
