import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { idOf, resourceOf } from "@plinth/resource";
import { ArtistSchema } from "@plinth/resource-service/testing";
import { encodeFence } from "@plinth/runtime";
import { describeWith } from "@plinth/test-support";
import { afterAll, beforeAll, expect, it } from "vitest";
import { effectWhere } from "./clients/effects.ts";
import type { Life } from "./clients/life.ts";
import { type Cluster, startCluster } from "./cluster/cluster.ts";
import { readEtcdRecord } from "./cluster/etcd-record.ts";
import { otherServer, pairOf, writeTasks } from "./cluster/pair.ts";
import { leaseProblems } from "./history/check-leases.ts";
import { Presence, Register, Task } from "./module/types.ts";

const lease = "controllers";
const takenOver = `lease ${lease} has another holder`;

describeWith("etcd")("a server that is stopped while it runs the singletons", () => {
	let cluster: Cluster;
	beforeAll(async () => {
		cluster = await startCluster({ members: 1, servers: 2 });
	});
	afterAll(() => cluster?.dispose());

	it("changes nothing when it continues after another has taken over", async () => {
		const pair = await pairOf(cluster);
		await writeTasks(pair.lives[0], [""]);
		const { process: oldProcess } = await effectWhere(pair.lives[0].client, () => true);
		const old = pair.serverOf(oldProcess);
		const next = otherServer(cluster, old);
		const [oldLife, nextLife] = [pair.lifeOf(old), pair.lifeOf(next)];

		// It is stopped between a write of its reconciler and the commit of that.
		await writeTasks(nextLife, ["", "stall"]);
		await old.logs(/stalls/);
		await old.suspend();
		await effectWhere(nextLife.client, ({ process }) => process === next.pid);
		// Writes with its fence wait for it, too.
		const fence = encodeFence({ lease, token: await tokenOf(cluster, oldProcess) });
		const late = ["late-1", "late-2"].map((name) => failureOf(putRegister(oldLife, name, fence)));
		expect(old.stderr).not.toContain("goes on");
		old.resume();

		await old.logs(new RegExp(`goes on\\n[^]*refused: .*${takenOver}`));
		expect(await Promise.all(late)).toEqual(late.map(() => `Aborted: ${takenOver}`));
		// It is back in every other way.
		await putRegister(oldLife, "after", undefined);

		const record = await readEtcdRecord(cluster);
		const holds = record.leases.filter((each) => each.lease === lease);
		expect(holds.map((each) => (each.kind === "put" ? each.process : "ended"))).toEqual([
			oldProcess,
			"ended",
			next.pid,
		]);
		expect(leaseProblems(record, lease)).toEqual([]);
		const ended = holds[1]?.revision ?? 0;
		const own = record.effects.filter(({ process }) => process === oldProcess);
		expect(own).not.toEqual([]);
		expect(own.filter(({ revision }) => revision > ended)).toEqual([]);
		// What it sent late changed nothing, except for what is not fenced. A late transaction may be missing: if the
		// server reads before it sends one, etcd already refuses the fence at that read.
		const { instance } =
			record.transactions.find(({ revision }) => revision === own[0]?.revision) ?? {};
		const afterwards = record.transactions.filter((each) => {
			return each.instance === instance && each.revision > ended;
		});
		const ofEachServer = `${Presence.family} task-1-${oldProcess}`;
		// It joins again, and then says that it has its shards.
		const changed = afterwards
			.flatMap((each) => each.changed)
			.filter((each) => !each.startsWith(`${Task.family} `));
		expect(changed.filter((each) => each !== ofEachServer)).toEqual([`${Register.family} after`]);
		expect(record.registers.map(({ register }) => register)).toEqual(["after"]);
	});
});

/** The token of the fence of the process's hold, as etcd has it. */
async function tokenOf(cluster: Cluster, process: number): Promise<string> {
	const { leases } = await readEtcdRecord(cluster);
	const hold = leases.find((each) => each.kind === "put" && each.process === process);
	return String(hold?.revision);
}

async function putRegister({ client }: Life, name: string, fence: string | undefined) {
	const data = create(ArtistSchema, { genre: name });
	const resource = resourceOf(Register, { id: idOf(Register, name), data });
	const headers = fence === undefined ? {} : { "x-plinth-fence": fence };
	return (await client.write({ resource }, { headers })).resource?.version;
}

async function failureOf(call: Promise<unknown>): Promise<string> {
	try {
		await call;
		return "none";
	} catch (error) {
		return error instanceof ConnectError ? `${Code[error.code]}: ${error.rawMessage}` : `${error}`;
	}
}
