/** Peering of clusters on etcd: each has its own prefix of one etcd, or an etcd of its own. */
import { createClient } from "@connectrpc/connect";
import { Import } from "@plinth/peering";
import { ServerService } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { idOf } from "@plinth/resource";
import { createPlinthTransport } from "@plinth/rpc-client";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { outcome } from "../callers.fixture.ts";
import { each, importArtists, ProcessCluster, peerProcesses } from "./process-cluster.fixture.ts";
import { eventually, importing, type TestCluster } from "./two-clusters.fixture.ts";

const patient = { timeout: 900_000 };

async function startEtcd(): Promise<EtcdProcess> {
	const etcd = await EtcdProcess.start();
	onTestFinished(() => etcd.dispose());
	return etcd;
}

const on = (etcd: EtcdProcess, prefix: string) =>
	({ storage: { kind: "etcd", endpoints: [etcd.url], prefix } }) as const;

const flagsOf = (etcd: EtcdProcess, prefix: string) => [
	...["--storage=etcd", `--etcd-endpoints=${etcd.url}`, `--etcd-prefix=${prefix}`],
];

const has = (east: TestCluster, ...artists: readonly string[]) =>
	eventually(async () => expect(await east.artists("west")).toEqual(artists));

/** Until the import has recorded that it is up to date. */
const isCurrent = (east: TestCluster) =>
	eventually(async () => {
		const report = await east.report("artists");
		expect(report).toMatchObject({ state: "Streaming", message: "", lagMs: 0n });
		return report;
	});

/** The names of the leases that the servers of a cluster hold. */
async function leasesOf(cluster: ProcessCluster): Promise<readonly string[]> {
	const transport = createPlinthTransport({ baseUrl: cluster.address });
	const { overview } = await createClient(ServerService, transport).getOverview({});
	transport.close();
	return overview?.leases.map(({ name }) => name) ?? [];
}

describeWith("etcd")("two clusters on etcd", () => {
	it(
		"copy from one prefix to another one, follow each change, resume, and remove what they have copied",
		patient,
		async () => {
			const etcd = await startEtcd();
			const { west, east } = await importing(on(etcd, "/west"), on(etcd, "/east"));
			await west.write(artist("miles"));
			await west.write(artist("nina"));
			await has(east, "default/miles=jazz", "default/nina=jazz");
			await west.write(artist("miles", "blues"));
			await west.server.client.delete({ id: idOf(Artist, "nina") });
			await has(east, "default/miles=blues");
			expect(await isCurrent(east)).toMatchObject({ snapshots: 1n, resumptions: 0n });
			await east.stop();
			await west.write(artist("ella"));
			await east.startAgain();
			await has(east, "default/ella=jazz", "default/miles=blues");
			expect(await isCurrent(east)).toMatchObject({ snapshots: 1n, resumptions: 1n });
			expect(await west.artists("*")).toEqual(["default/ella=jazz", "default/miles=blues"]);
			await east.server.client.delete({ id: idOf(Import, "artists") });
			await eventually(async () =>
				expect(await outcome(east.artist("miles", "west"))).toBe(
					"NotFound: partition not found: west",
				),
			);
		},
	);

	it(
		"go on at another server of the cluster that imports, when the one that does is killed within a snapshot",
		patient,
		async () => {
			const etcd = await startEtcd();
			const west = await ProcessCluster.start(flagsOf(etcd, "/west"));
			let importer = await ProcessCluster.start(flagsOf(etcd, "/east"));
			await peerProcesses(west, importer);
			const count = 3_000;
			await each(count, (index) => west.resources.write({ resource: artist(`artist-${index}`) }));
			await eventually(async () => expect(await leasesOf(importer)).toContain("peering-imports"));
			let other = await ProcessCluster.start(flagsOf(etcd, "/east"));
			// A kill that comes after the snapshot shows nothing: then there is another import, which the other server runs.
			for (let attempt = 0; ; attempt += 1) {
				const name = `artists-${attempt}`;
				await importArtists(other, name, name);
				const copied = async () =>
					Number((await other.report(name))?.copies["music.v1.Artist"] ?? 0n);
				await eventually(async () => expect(await copied()).toBeGreaterThan(0));
				await importer.kill();
				await eventually(async () => {
					expect(await other.report(name)).toMatchObject({ state: "Streaming", lagMs: 0n });
					expect(await copied()).toBe(count);
				});
				const { snapshots, resumptions } = (await other.report(name)) ?? {};
				if (snapshots === 2n) {
					expect(resumptions).toBe(0n);
					break;
				}
				expect([snapshots, resumptions]).toEqual([1n, 1n]);
				await importer.start();
				[importer, other] = [other, importer];
			}
			const copies = new Set<string>();
			for await (const copy of other.artists("artists-0")) {
				copies.add(copy.id?.name ?? "");
			}
			expect(copies.size).toBe(count);
		},
	);

	it(
		"find out that the etcd of the one that exports was restored, take everything again, and remove what is lost",
		patient,
		async () => {
			const [etcd, another] = [await startEtcd(), await startEtcd()];
			const { west, east } = await importing(on(etcd, "/plinth"), on(another, "/plinth"));
			await west.write(artist("miles"));
			await has(east, "default/miles=jazz");
			await isCurrent(east);
			const snapshot = await etcd.saveSnapshot();
			await west.write(artist("ella"));
			await west.write(artist("miles", "blues"));
			await has(east, "default/ella=jazz", "default/miles=blues");
			await west.stop();
			await etcd.restoreSnapshot(snapshot, "restored");
			await etcd.restart();
			await west.startAgain();
			await has(east, "default/miles=jazz");
			expect((await isCurrent(east))?.snapshots).toBe(2n);
			await west.write(artist("miles", "funk"));
			await has(east, "default/miles=funk");
		},
	);

	it("continue when the etcd that both use was restored", patient, async () => {
		const etcd = await startEtcd();
		const { west, east } = await importing(on(etcd, "/west"), on(etcd, "/east"));
		await west.write(artist("miles"));
		await has(east, "default/miles=jazz");
		await isCurrent(east);
		const snapshot = await etcd.saveSnapshot();
		await west.write(artist("ella"));
		await has(east, "default/ella=jazz", "default/miles=jazz");
		await east.stop();
		await west.stop();
		await etcd.restoreSnapshot(snapshot, "restored");
		await etcd.restart();
		await west.startAgain();
		await east.startAgain();
		expect(await east.artists("west")).toEqual(["default/miles=jazz"]);
		await west.write(artist("nina"));
		await has(east, "default/miles=jazz", "default/nina=jazz");
		expect((await isCurrent(east))?.snapshots).toBe(2n);
	});
});
