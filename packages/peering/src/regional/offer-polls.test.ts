import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import {
	GetOfferResponseSchema,
	ListOffersResponseSchema,
	RegionalCopyService,
} from "@plinth/proto/gen/plinth/meta/v1/regional_copy_service_pb.js";
import { newUlid } from "@plinth/resource";
import { systemRuntime as runtime, silentLogger } from "@plinth/runtime";
import { expect, it } from "vitest";
import { OfferPolls } from "./offer-polls.ts";
import { regionSource } from "./region-source.ts";

const own = { service: "goods", region: "north" };

it("a region that does not respond holds up the offers of others for a moment only, and counts when it responds", async () => {
	const response = Promise.withResolvers<void>();
	let calls = 0;
	const connect = (address: string) =>
		createInProcessTransport(
			(router) =>
				router.service(RegionalCopyService, {
					listOffers: async () => {
						if (address === "slow") {
							calls += 1;
							await response.promise;
						}
						return create(ListOffersResponseSchema, { partitions: [address] });
					},
				}),
			runtime,
		);
	const polls = new OfferPolls({ own, runtime, logger: silentLogger, regions: { connect } });
	const regions = ["slow", "fast"].map((name) => ({
		...{ region: name, uid: newUlid(runtime), addresses: [name] },
	}));
	const { signal } = new AbortController();
	await polls.poll(regions, signal);
	expect(polls.isOffered("fast", "fast")).toBe(true);
	expect(polls.isOffered("slow", "slow")).toBe(false);
	await polls.poll(regions, signal);
	expect(calls).toBe(1);
	response.resolve();
	await expect.poll(() => polls.isOffered("slow", "slow"), { timeout: 300_000 }).toBe(true);
	await polls.poll(regions, signal);
	expect(calls).toBe(2);
});

it("a server of a region is called again for as long as it responds and is known", async () => {
	const called: string[] = [];
	let broken = "";
	const connect = (address: string) =>
		createInProcessTransport(
			(router) =>
				router.service(RegionalCopyService, {
					getOffer: () => {
						called.push(address);
						if (address === broken) {
							throw new Error("it stops");
						}
						const offer = { incarnation: newUlid(runtime), generation: "one", types: [] };
						return create(GetOfferResponseSchema, { cluster: newUlid(runtime), offer });
					},
				}),
			runtime,
		);
	let addresses = ["a", "b", "c"];
	let next = 0;
	const source = regionSource({
		...{ own, regions: { connect }, region: "west", partition: "default" },
		deployment: () => ({ region: "west", uid: newUlid(runtime), addresses }),
		random: { ...runtime.random, next: () => next },
	});
	const describe = async () => {
		const dialed = await source.dial(new AbortController().signal);
		await dialed.describe().catch(() => {});
	};
	await describe();
	next = 0.5;
	await describe();
	broken = "a";
	await describe();
	await describe();
	next = 0;
	await describe();
	addresses = ["c"];
	await describe();
	expect(called).toEqual(["a", "a", "a", "b", "b", "c"]);
});

it("another server of a region is called if the streams of one fail, though it says what it offers", async () => {
	const streamed: string[] = [];
	const connect = (address: string) =>
		createInProcessTransport(
			(router) =>
				router.service(RegionalCopyService, {
					getOffer: () => {
						const offer = { incarnation: newUlid(runtime), generation: "one", types: [] };
						return create(GetOfferResponseSchema, { cluster: newUlid(runtime), offer });
					},
					// biome-ignore lint/correctness/useYield: it fails before
					async *streamOffer() {
						streamed.push(address);
						const code = address === "a" ? Code.ResourceExhausted : Code.Aborted;
						throw new ConnectError("no more streams", code);
					},
				}),
			runtime,
		);
	let next = 0;
	const source = regionSource({
		...{ own, regions: { connect }, region: "west", partition: "default" },
		deployment: () => ({ region: "west", uid: newUlid(runtime), addresses: ["a", "b"] }),
		random: { ...runtime.random, next: () => next },
	});
	const stream = async () => {
		const dialed = await source.dial(new AbortController().signal);
		const { offered } = await dialed.describe();
		await expect(Array.fromAsync(dialed.stream({ ...offered, positions: [] }))).rejects.toThrow();
	};
	await stream();
	next = 0.5;
	await stream();
	// Aborted says that what is offered has changed: the server itself is all right.
	next = 0;
	await stream();
	expect(streamed).toEqual(["a", "b", "b"]);
});
