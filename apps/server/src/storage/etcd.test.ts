import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ResourceService } from "@plinth/proto";
import { idOf, typeOf } from "@plinth/resource";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { Artist, artist } from "../../testdata/music.ts";
import { musicModuleFile, ServerProcess } from "../server-process.fixture.ts";

const holdsLease = /acquired the lease of singleton controllers/;

async function clientOf(server: ServerProcess) {
	const transport = createGrpcTransport({ baseUrl: await server.listening() });
	return createClient(ResourceService, transport);
}

describeWith("etcd")("plinth-server, two of them on one etcd", () => {
	async function startTwo() {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const args = ["--listen", "127.0.0.1:0", "--module", musicModuleFile, "--storage", "etcd"];
		const one = new ServerProcess(...args, "--etcd-endpoints", etcd.url);
		await one.logs(holdsLease);
		const other = new ServerProcess(...args, "--etcd-endpoints", etcd.url);
		return { one, other };
	}

	it("tell a watch on one what is written on the other", async () => {
		const { one, other } = await startTwo();
		const [writer, reader] = [await clientOf(one), await clientOf(other)];
		expect(other.stdout).toContain("etcd at http://");
		const seen: string[] = [];
		for await (const { event } of reader.watchList({ type: typeOf(Artist.type) })) {
			seen.push(event.case === "upsert" ? (event.value.resource?.id?.name ?? "") : "");
			if (event.case === "endOfSnapshot") {
				await writer.write({ resource: artist("miles") });
			} else if (event.case === "upsert") {
				break;
			}
		}
		expect(seen).toEqual(["", "miles"]);
		await reader.delete({ id: idOf(Artist, "miles") });
		const { resources } = await writer.list({ type: typeOf(Artist.type), tenancy: {} });
		expect(resources).toEqual([]);
	});

	it("have their singletons moved when the one that runs them is killed", async () => {
		const { one, other } = await startTwo();
		const client = await clientOf(other);
		one.kill("SIGKILL");
		await other.logs(holdsLease);
		const owner = (await client.write({ resource: artist("owner") })).resource;
		const owned = artist("owned");
		if (owner?.id !== undefined) {
			owned.owner = owner.id;
		}
		await client.write({ resource: owned });
		await client.delete({ id: idOf(Artist, "owner") });
		// The reaper is a singleton.
		for await (const { event } of client.watchList({ type: typeOf(Artist.type) })) {
			if (event.case === "delete" || event.case === "endOfSnapshot") {
				const { resources } = await client.list({ type: typeOf(Artist.type), tenancy: {} });
				if (resources.length === 0) {
					break;
				}
			}
		}
	});
});
