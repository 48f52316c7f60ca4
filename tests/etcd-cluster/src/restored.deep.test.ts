import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { Code, ConnectError } from "@connectrpc/connect";
import { idOf } from "@plinth/resource";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import type { Life } from "./clients/life.ts";
import { perform, textOf } from "./clients/perform.ts";
import { type Cluster, startCluster } from "./cluster/cluster.ts";
import { Register } from "./module/types.ts";

const main = fileURLToPath(new URL("../../../apps/server/src/main.ts", import.meta.url));
const ever = new AbortController().signal;

async function start(): Promise<Cluster> {
	const flags = ["--limits-stop-timeout", "3s"];
	const cluster = await startCluster({ members: 3, servers: 2, flags });
	onTestFinished(() => cluster.dispose());
	return cluster;
}

async function livesOf({ servers }: Cluster): Promise<readonly Life[]> {
	const lives = await Promise.all(servers.map((server) => server.life(ever)));
	return lives.filter((life) => life !== undefined);
}

/** Writes a register, which must be acknowledged; returns its version. */
async function write(life: Life, register: string, text: string): Promise<string> {
	const { outcome } = await perform(life, register, { kind: "put", text }, true);
	if (outcome.kind !== "value") {
		throw new Error(`not acknowledged: ${JSON.stringify(outcome)}`);
	}
	return outcome.version;
}

/** All registers that a server has, read strongly. */
async function registersOf({ client }: Life): Promise<Readonly<Record<string, string>>> {
	const headers = { "x-plinth-consistency-mode": "consistent" };
	const { resources } = await client.list({ type: Register.type, tenancy: {} }, { headers });
	return Object.fromEntries(resources.map((each) => [each.id?.name ?? "", textOf(each)]));
}

/** Restores all members from the snapshot, by etcd's own steps, and starts them. */
async function restoreMembers({ members }: Cluster, file: string, token: string): Promise<void> {
	await Promise.all(members.map((member) => member.kill()));
	for (const member of members) {
		await member.restoreSnapshot(file, token);
	}
	await Promise.all(members.map((member) => member.restart()));
}

/** Checks that both servers agree, and that versions from before mean nothing to them. */
async function expectAgree(
	cluster: Cluster,
	kept: Readonly<Record<string, string>>,
	old: string,
): Promise<void> {
	const [one, other] = await livesOf(cluster);
	if (one === undefined || other === undefined) {
		throw new Error("two servers are expected");
	}
	for (const life of [one, other]) {
		expect(await registersOf(life)).toEqual(kept);
		const stale = { kind: "compare-and-swap", version: old, text: "stale" } as const;
		expect((await perform(life, "kept", stale, true)).outcome.kind).toBe("conflict");
		const resumed = life.client.watchList({ type: Register.type, afterVersion: old });
		const ended = await resumed[Symbol.asyncIterator]()
			.next()
			.catch((error: unknown) => ConnectError.from(error));
		expect(ended).toMatchObject({ code: Code.OutOfRange });
	}
	const version = await write(one, "after", "one");
	expect(Number(version)).toBeGreaterThan(Number(old));
	expect(await registersOf(other)).toEqual({ ...kept, after: "one" });
	await write(other, "after", "other");
	expect(await registersOf(one)).toEqual(await registersOf(other));
	const { resource } = await one.client.read({ id: idOf(Register, "kept") });
	expect(Number(resource?.version)).toBeGreaterThan(Number(old));
}

/** A cluster, a copy of its etcd, and the version of the last write after that copy. */
async function writtenPastCopy() {
	const cluster = await start();
	const [one, other] = await livesOf(cluster);
	if (one === undefined || other === undefined) {
		throw new Error("two servers are expected");
	}
	await write(one, "kept", "1");
	const file = (await cluster.members[0]?.saveSnapshot()) ?? "";
	let old = "";
	for (let round = 0; round < 10; round++) {
		old = await write(other, "lost", String(round));
	}
	return { cluster, one, other, file, old };
}

describeWith("etcd")("etcd's own restore, of three members under two servers", () => {
	it("begins versions above all before, by the documented steps", async () => {
		const { cluster, file, old } = await writtenPastCopy();
		expect(await Promise.all(cluster.servers.map((server) => server.stop()))).toEqual([0, 0]);
		await restoreMembers(cluster, file, "restored");
		await Promise.all(cluster.servers.map((server) => server.start()));
		await expectAgree(cluster, { kept: "1" }, old);
	});

	it("needs the command if the restored cluster has the token of the former one", async () => {
		const cluster = await start();
		const [one] = await livesOf(cluster);
		if (one === undefined) {
			throw new Error("two servers are expected");
		}
		await write(one, "kept", "1");
		const file = (await cluster.members[0]?.saveSnapshot()) ?? "";
		const old = await write(one, "lost", "1");
		await Promise.all(cluster.servers.map((server) => server.stop()));
		// The token that etcd has by default.
		await restoreMembers(cluster, file, "etcd-cluster");
		const endpoints = cluster.members.map(({ url }) => url).join(",");
		const { status, stdout } = spawnSync(
			process.execPath,
			[
				...[main, "etcd-restored", "--storage", "etcd", "--etcd-endpoints", endpoints],
				...["--etcd-prefix", cluster.prefix],
			],
			{ encoding: "utf8" },
		);
		expect(stdout).toMatch(/^started incarnation \w+ of the storage in etcd/);
		expect(status).toBe(0);
		await Promise.all(cluster.servers.map((server) => server.start()));
		await expectAgree(cluster, { kept: "1" }, old);
	});

	it("under running servers: they accept no write, are not ready, exit 1, and agree once they start again", async () => {
		const { cluster, one, other, file, old } = await writtenPastCopy();
		await restoreMembers(cluster, file, "etcd-cluster");
		for (const life of [one, other]) {
			const { outcome } = await perform(life, "late", { kind: "put", text: "late" }, true);
			expect(outcome).toMatchObject({
				kind: "unknown",
				why: expect.stringMatching(/^Unavailable/),
			});
		}
		for (const server of cluster.servers) {
			await server.logs(/server not ready/);
			expect(server.stderr).toContain("lost history");
		}
		expect(await Promise.all(cluster.servers.map((server) => server.exited()))).toEqual([1, 1]);
		await Promise.all(cluster.servers.map((server) => server.kill()));
		await Promise.all(cluster.servers.map((server) => server.start()));
		await expectAgree(cluster, { kept: "1" }, old);
	});
});
