import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import {
	LeaseKind,
	type Overview,
	ServerService,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { musicModuleFile, ServerProcess } from "../server-process.fixture.ts";

const patiently = { timeout: 300_000, interval: 100 };

async function startServer(etcd: EtcdProcess) {
	const server = new ServerProcess(
		...["--storage=etcd", `--etcd-endpoints=${etcd.url}`, "--listen=127.0.0.1:0"],
		...[`--module=${musicModuleFile}`],
	);
	const address = await server.listening();
	const transport = createConnectTransport({ baseUrl: address, httpVersion: "2" });
	return {
		...{ server, address },
		servers: createClient(ServerService, transport),
		resources: createClient(ResourceService, transport),
	};
}

type Started = Awaited<ReturnType<typeof startServer>>;

async function overviewOf({ servers }: Started): Promise<Overview | undefined> {
	return (await servers.getOverview({})).overview;
}

describeWith("etcd")("the overview of two servers on one etcd", () => {
	async function startTwo(): Promise<readonly [Started, Started]> {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const all = [await startServer(etcd), await startServer(etcd)] as const;
		for (const each of all) {
			const known = async () =>
				(await overviewOf(each))?.servers.map(({ server }) => server?.missing);
			await expect.poll(known, patiently).toEqual(["", ""]);
		}
		return all;
	}

	it("counts resources once, and what each server does together, whichever is called", async () => {
		const [one, other] = await startTwo();
		for (const name of ["miles", "john", "bill"]) {
			await one.resources.write({ resource: artist(name) });
		}
		for (const each of [one, other]) {
			const artists = async () =>
				(await overviewOf(each))?.types.find(({ type }) => type === Artist.key);
			await expect.poll(artists, patiently).toMatchObject({ resources: 3n, writes: 3n });
			const overview = await overviewOf(each);
			const commits = overview?.servers.map(({ storage }) => storage?.commits ?? 0n) ?? [];
			expect(commits).toHaveLength(2);
			expect(overview?.storage).toMatchObject({
				kind: "etcd",
				commits: (commits[0] ?? 0n) + (commits[1] ?? 0n),
			});
			expect(overview?.servers.filter(({ server }) => server?.holdsLease)).toHaveLength(1);
			const sum = (counts: readonly bigint[] = []) => counts.reduce((all, one) => all + one, 0n);
			const durations = overview?.servers.map(({ storage }) => sum(storage?.commitDurations)) ?? [];
			expect(sum(overview?.storage?.commitDurations)).toBe(sum(durations));
			expect(overview?.storage?.batches).toBeGreaterThan(0n);
			expect(overview?.storage?.commitMedian).toBeDefined();
			const singletons = overview?.leases.filter(({ kind }) => kind === LeaseKind.SINGLETONS);
			const holders = overview?.servers.filter(({ server }) => server?.holdsLease);
			expect(singletons).toMatchObject([{ server: holders?.[0]?.server?.name }]);
			for (const { controller } of overview?.controllers ?? []) {
				expect(controller?.servers).toHaveLength(2);
			}
			const alone = await each.servers.getOverview({ thisServerOnly: true });
			expect(alone.overview?.servers.map(({ server }) => server?.address)).toEqual([each.address]);
		}
	});

	it("adds the rates of both, names one that hangs, and goes on with the other", async () => {
		const [one, other] = await startTwo();
		const stop = new AbortController();
		onTestFinished(() => stop.abort());
		const messages = one.servers
			.watchOverview({ interval: durationFromMs(1_000) }, { signal: stop.signal })
			[Symbol.asyncIterator]();
		const next = async () => {
			const { done, value } = await messages.next();
			return done === true ? undefined : value.overview;
		};
		await next();
		await other.resources.write({ resource: artist("miles") });
		let overview = await next();
		while (overview?.storage?.commitsPerSecond === 0) {
			overview = await next();
		}
		const writer = overview?.servers.find(({ server }) => server?.address === other.address);
		expect(writer?.storage?.commitsPerSecond).toBeGreaterThan(0);
		other.server.kill("SIGSTOP");
		const missing = async () =>
			new Map((await next())?.servers.map(({ server }) => [server?.address, server?.missing]));
		while ((await missing()).get(other.address) !== "did not respond in time") {
			// A report may have been under way.
		}
		expect((await missing()).get(one.address)).toBe("");
		other.server.kill("SIGKILL");
		await other.server.ended;
		while ((await missing()).size === 2) {
			// Its lease in etcd has not ended yet.
		}
	});
});
