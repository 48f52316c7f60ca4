import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { artist } from "../../testdata/music.ts";
import { startMusic } from "./music-process.fixture.ts";
import { credentialFile, startDeployment } from "./started-deployment.fixture.ts";
import { artistsOf, partitionWithPolicy, patiently, TestRegion } from "./two-regions.fixture.ts";

describeWith("etcd")("a region of several servers", () => {
	it("has copies on all of them, which follow whichever server is killed", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const file = credentialFile();
		const { internal: metaAddress } = await startDeployment("meta", file);
		const west = await TestRegion.start("r1", { file, metaAddress });
		const start = () => startMusic(etcd, { metaAddress, file, region: "r2" });
		const first = await start();
		const second = await start();
		await west.write("miles", "jazz");
		await west.partitionPolicy("default", "r2");
		for (const { client } of [first, second]) {
			await expect.poll(() => artistsOf(client, "*"), patiently).toEqual(["r1:default/miles=jazz"]);
		}
		first.server.kill("SIGKILL");
		await first.server.ended;
		await west.write("miles", "cool");
		await expect
			.poll(() => artistsOf(second.client, "*"), patiently)
			.toEqual(["r1:default/miles=cool"]);
		const third = await start();
		second.server.kill("SIGKILL");
		await second.server.ended;
		await west.write("nico", "rock");
		await west.delete("miles");
		await expect
			.poll(() => artistsOf(third.client, "*"), patiently)
			.toEqual(["r1:default/nico=rock"]);
		await west.partitionPolicy("default");
		await expect.poll(() => artistsOf(third.client, "*"), patiently).toEqual([]);
	});

	it("is copied from whichever of its servers is left", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const file = credentialFile();
		const { internal: metaAddress } = await startDeployment("meta", file);
		const start = () => startMusic(etcd, { metaAddress, file, region: "r1" });
		const first = await start();
		const east = await TestRegion.start("r2", { file, metaAddress });
		await first.client.write({ resource: artist("miles") });
		await first.client.write({ resource: partitionWithPolicy("default", ["r2"]) });
		await expect.poll(() => east.artists(), patiently).toEqual(["r1:default/miles=jazz"]);
		const second = await start();
		first.server.kill("SIGKILL");
		await first.server.ended;
		await second.client.write({ resource: artist("miles", "cool") });
		await expect.poll(() => east.artists(), patiently).toEqual(["r1:default/miles=cool"]);
	});
});
