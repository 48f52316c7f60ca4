import { once } from "node:events";
import { create, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { ListRequestSchema } from "@plinth/proto";
import { idOf, Namespace } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { artist } from "../testdata/music.ts";
import { Health } from "./gen/grpc/health/v1/health_pb.ts";
import { http2OfLongTests, startLoaded } from "./load.fixture.ts";
import {
	enveloped,
	metric,
	metricReaches,
	openSession,
	openSocket,
	post,
	postText,
} from "./raw-calls.fixture.ts";

const list = "/plinth.resource.v1.ResourceService/List";
const artists = JSON.stringify({
	type: { group: "music", groupVersion: "v1", kind: "Artist" },
	tenancy: { partition: "*", namespace: "*" },
});

const kB = (bytes: number) => Math.round(bytes / 100) / 10;
const MB = (bytes: number) => Math.round(bytes / 1_000_000);
const resident = "plinth_process_memory_bytes";

describe.each(http2OfLongTests)("a server process with --http2 %s", (http2) => {
	const start = (flags: readonly string[] = [], nodeOptions: readonly string[] = []) =>
		startLoaded(["--http2", http2, ...flags], {}, nodeOptions);

	it("of 512 MB survives 5,000 health watches, takes 1,000, and responds to probes", async () => {
		const server = await start([], ["--max-old-space-size=512"]);
		const { address } = server;
		const before = await server.heap();
		let refused = 0;
		for (let connection = 0; connection < 50; connection += 1) {
			const session = openSession(address);
			const first = Promise.withResolvers<void>();
			let responses = 0;
			for (let stream = 0; stream < 100; stream += 1) {
				const call = post(session, "/grpc.health.v1.Health/Watch", enveloped(""), {
					contentType: "application/grpc",
				});
				const settle = () => {
					responses += 1;
					if (responses === 100) {
						first.resolve();
					}
				};
				call.stream.once("data", settle);
				void call.ended.then(({ status }) => {
					if (status === "grpc 8") {
						refused += 1;
						settle();
					}
				});
			}
			await first.promise;
		}
		expect(refused).toBe(4_000);
		expect(await metric(address, "plinth_health_watches")).toBe(1_000);
		const health = createClient(Health, createGrpcTransport({ baseUrl: address }));
		expect((await health.check({})).status).toBe(1);
		const grown = (await server.heap()) - before;
		process.stdout.write(`health watches: ${kB(grown / 1_000)} kB of heap each\n`);
		// Fifty connections are part of it.
		expect(grown).toBeLessThan(1_000 * 5_000 + 50 * 50_000);
	});

	it("keeps its memory while an idle health stream costs less than 5 kB of heap and 20 kB resident", async () => {
		const server = await start([
			...["--limits-health-watches", "20000"],
			...["--limits-health-watches-per-connection", "1000"],
		]);
		const { address } = server;
		const hold = async (count: number) => {
			for (let connection = 0; connection < count / 1_000; connection += 1) {
				const session = openSession(address);
				for (let stream = 0; stream < 1_000; stream += 1) {
					const call = post(session, "/grpc.health.v1.Health/Watch", enveloped(""), {
						contentType: "application/grpc",
					});
					await once(call.stream, "data");
				}
			}
		};
		// What the runtime compiles and reserves for the first is not what one more costs.
		await hold(2_000);
		const heap = await server.heap();
		const rss = await metric(address, resident, 'kind="rss"');
		await hold(6_000);
		const heapEach = ((await server.heap()) - heap) / 6_000;
		const rssEach = ((await metric(address, resident, 'kind="rss"')) - rss) / 6_000;
		process.stdout.write(
			`an idle health stream: ${kB(heapEach)} kB heap, ${kB(rssEach)} kB resident\n`,
		);
		expect(heapEach).toBeLessThan(5_000);
		expect(rssEach).toBeLessThan(20_000);
	});

	it("bounds what 50 connections hold that post List and do not read", async () => {
		const server = await start(["--limits-write-stall", "1h"]);
		const { address, client } = server;
		for (let index = 0; index < 15; index += 1) {
			await client.write({ resource: artist(`large-${index}`, "x".repeat(1_000_000)) });
		}
		const before = await metric(address, resident, 'kind="rss"');
		let most = 0;
		const { type } = JSON.parse(artists);
		const request = create(ListRequestSchema, {
			type,
			tenancy: { partition: "*", namespace: "*" },
		});
		const body = Buffer.from(toBinary(ListRequestSchema, request)).toString("latin1");
		for (let connection = 0; connection < 50; connection += 1) {
			const socket = await openSocket(address);
			socket.write(postText(list, body, "application/proto"), "latin1");
			most = Math.max(most, await metric(address, "plinth_response_pending_bytes"));
			const { resource } = await client.read({ id: idOf(Namespace, "default") });
			expect(resource?.id?.name).toBe("default");
		}
		await metricReaches(
			address,
			"plinth_calls_in_flight",
			50 - (await metric(address, "plinth_calls_cut_total")),
		);
		const after = await metric(address, resident, 'kind="rss"');
		process.stdout.write(
			`unread lists: ${MB(most)} MB waiting, ${MB(after - before)} MB more resident, ${await metric(address, "plinth_calls_cut_total")} cut\n`,
		);
		expect(most).toBeLessThanOrEqual(256 * 1024 ** 2);
		expect(after - before).toBeLessThan(1_000_000_000);
	});

	it("survives floods of RST_STREAM, and no call is left", async () => {
		const server = await start();
		const { address, client } = server;
		const before = await server.heap();
		for (let round = 0; round < 20; round += 1) {
			const session = openSession(address);
			await once(session, "remoteSettings");
			for (let call = 0; call < 500; call += 1) {
				post(session, list, artists, { isOpen: true }).stream.close(8);
			}
			await client.read({ id: idOf(Namespace, "default") });
			session.destroy();
		}
		await metricReaches(address, "plinth_calls_in_flight", 0);
		const after = await server.heap();
		process.stdout.write(`resets: ${kB((after - before) / 1_000)} MB more heap\n`);
		expect(after).toBeLessThan(before * 1.2);
	});
});
