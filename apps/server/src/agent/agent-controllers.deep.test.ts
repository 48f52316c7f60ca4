import { createClient } from "@connectrpc/connect";
import { ResourceService } from "@plinth/proto";
import { createPlinthTransport } from "@plinth/rpc-client";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { musicModule } from "../../testdata/music.ts";
import { startServer } from "../started-server.fixture.ts";
import { agency, allReconciled, write } from "./agency.fixture.ts";
import { startTestAgent } from "./started-agent.fixture.ts";

describeWith("etcd")("controllers in agents before two servers of one etcd", () => {
	it("share the work by shards, and go on without a rewind while servers are replaced", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const options = {
			storage: { kind: "etcd", endpoints: [etcd.url] },
			modules: [musicModule()],
		} as const;
		const one = await startServer(options);
		const two = await startServer(options);
		const servers = [one.address, two.address];
		const agencies = [agency("sharded"), agency("sharded")];
		for (const { module } of agencies) {
			await startTestAgent(servers, {}, { modules: [module] });
		}
		const names = (prefix: string) => Array.from({ length: 20 }, (_, at) => `${prefix}-${at}`);
		await write(two, ...names("before"));
		await allReconciled(two, ...names("before"));
		await one.stop();
		await write(two, ...names("between"));
		await allReconciled(two, ...names("between"));
		const port = Number(new URL(one.address).port);
		await startServer({ ...options, listen: { host: "127.0.0.1", port } });
		await two.stop();
		const resources = createPlinthTransport({ baseUrl: one.address });
		onTestFinished(() => resources.close());
		const client = createClient(ResourceService, resources);
		await write({ client }, ...names("after"));
		await allReconciled({ client }, ...names("after"));
		expect(agencies.flatMap(({ rewinds }) => rewinds)).toEqual([]);
		// Each of them has worked.
		expect(agencies.map(({ reconciled }) => reconciled.length > 0)).toEqual([true, true]);
	});
});
