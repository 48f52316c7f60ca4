/** Watches through an agent while the servers of a cluster are killed and stopped, in the midst of writes. */

import { createRegistry } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import {
	createConnectTransport,
	createGrpcTransport,
	createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { ResourceService, type WatchEvent } from "@plinth/proto";
import { idOf, typeOf } from "@plinth/resource";
import { EtcdProcess } from "@plinth/storage-etcd/testing";
import { describeWith } from "@plinth/test-support";
import { expect, it, onTestFinished } from "vitest";
import { ArtistSchema } from "../../testdata/gen/music/v1/music_pb.ts";
import { Artist, artist, musicModule } from "../../testdata/music.ts";
import { metric } from "../raw-calls.fixture.ts";
import { musicModuleFile, ServerProcess } from "../server-process.fixture.ts";
import { startServer } from "../started-server.fixture.ts";
import { readiness, startReadyAgent } from "./started-agent.fixture.ts";

const patiently = { timeout: 300_000, interval: 20 };
const artists = { type: typeOf(Artist.type), tenancy: { partition: "*", namespace: "*" } };

/** What a client was sent, from the end of its snapshot on. */
type Sent = string[];

function textOf({ event, version }: WatchEvent): string {
	const resource =
		event.case === "upsert" || event.case === "delete" ? event.value.resource : undefined;
	return `${event.case} ${resource?.id?.name}@${resource?.version} ${version}`;
}

/** Follows a watch until the test is over. Fails if it ends earlier. */
function follow(client: Client<typeof ResourceService>, failures: unknown[]): Sent {
	const end = new AbortController();
	onTestFinished(() => end.abort());
	const sent: Sent = [];
	void (async () => {
		try {
			for await (const event of client.watchList(artists, { signal: end.signal })) {
				sent.push(textOf(event));
			}
			throw new Error("the watch has ended");
		} catch (failure) {
			failures.push(failure);
		}
	})();
	return sent;
}

/** Follows two watches of a set in the same way. */
function followSet(client: Client<typeof ResourceService>, failures: unknown[]): readonly Sent[] {
	const end = new AbortController();
	onTestFinished(() => end.abort());
	const ids = ["one", "another"];
	const sent = new Map<string, Sent>(ids.map((id) => [id, []]));
	void (async () => {
		try {
			const watches = ids.map((id) => ({ id, request: artists }));
			for await (const { watchId, content } of client.watchSet(
				{ watches },
				{ signal: end.signal },
			)) {
				sent
					.get(watchId)
					?.push(content.case === "event" ? textOf(content.value) : JSON.stringify(content.value));
			}
			throw new Error("the set has ended");
		} catch (failure) {
			failures.push(failure);
		}
	})();
	return [...sent.values()];
}

const transports: readonly ((baseUrl: string) => Transport)[] = [
	(baseUrl) => createGrpcTransport({ baseUrl }),
	(baseUrl) => createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }),
	(baseUrl) => createConnectTransport({ baseUrl, httpVersion: "2" }),
	(baseUrl) =>
		createConnectTransport({
			...{ baseUrl, httpVersion: "1.1", useBinaryFormat: false },
			jsonOptions: { registry: createRegistry(ArtistSchema) },
		}),
];

describeWith("etcd")("watches through an agent in front of a cluster", () => {
	it("see each event once while servers are killed and stopped", async () => {
		const etcd = await EtcdProcess.start();
		onTestFinished(() => etcd.dispose());
		const startProcess = async (listen: string) => {
			const process = new ServerProcess(
				...["--storage=etcd", `--etcd-endpoints=${etcd.url}`, `--listen=${listen}`],
				`--module=${musicModuleFile}`,
			);
			return { process, address: await process.listening() };
		};
		// The agent does not know this one, which writes, and shows what a direct watch sees.
		const direct = await startServer({
			storage: { kind: "etcd", endpoints: [etcd.url] },
			modules: [musicModule()],
		});
		let first = await startProcess("127.0.0.1:0");
		const second = await startProcess("127.0.0.1:0");
		const agent = await startReadyAgent([first.address, second.address]);
		const clientTo = (address: string, transport = transports[0]) =>
			createClient(ResourceService, (transport ?? (createGrpcTransport as never))(address));
		const failures: unknown[] = [];
		const expected = follow(clientTo(direct.address), failures);
		const followed = transports.flatMap((transport) => [
			...[1, 2].map(() => follow(clientTo(agent.address, transport), failures)),
			...followSet(clientTo(agent.address, transport), failures),
		]);
		for (const sent of [expected, ...followed]) {
			await expect.poll(() => sent.length, patiently).toBe(1);
		}

		const writer = clientTo(direct.address);
		let round = 0;
		let isWriting = true;
		const writing = (async () => {
			while (isWriting) {
				round += 1;
				// Together, so that some share a revision.
				const names = Array.from({ length: 12 }, (_, index) => `artist-${index}`);
				await Promise.all(
					names.map((name, index) =>
						(index + round) % 3 === 0
							? writer.delete({ id: idOf(Artist, name) })
							: writer.write({ resource: artist(name, "x".repeat(index * 2_000)) }),
					),
				);
			}
		})();
		const rounds = async (count: number) => {
			const before = round;
			await expect.poll(() => round, patiently).toBeGreaterThan(before + count);
		};
		await rounds(5);
		first.process.kill("SIGKILL");
		await rounds(20);
		const port = new URL(first.address).port;
		await first.process.ended;
		first = await startProcess(`127.0.0.1:${port}`);
		await readiness(agent.address, new RegExp(`${first.address}: ready`));
		second.process.kill("SIGTERM");
		await rounds(20);
		isWriting = false;
		await writing;
		await writer.write({ resource: artist("last") });
		const ends = () => [expected, ...followed].map((sent) => sent.at(-1)?.slice(0, 300));
		const isLast: unknown = expect.stringMatching(/^upsert last@/);
		await expect.poll(ends, patiently).toEqual([expected, ...followed].map(() => isLast));
		const changes = expected.slice(1);
		expect(new Set(changes).size).toBe(changes.length);
		// Some revisions have several events, of which only the last one has a version.
		expect(changes.some((each) => each.endsWith(" "))).toBe(true);
		for (const sent of followed) {
			expect(sent.slice(1)).toEqual(changes);
		}
		expect(failures).toEqual([]);
		expect(await metric(agent.address, "plinth_agent_watch_moves")).toBeGreaterThanOrEqual(
			followed.length / 2,
		);
	}, 600_000);
});
