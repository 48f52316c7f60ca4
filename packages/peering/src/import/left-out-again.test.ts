import { create } from "@bufbuild/protobuf";
import { LeftOutSchema } from "@plinth/proto/gen/plinth/peering/v1/peering_service_pb.js";
import { type ResourceType, typeOf } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { LaterGood } from "../regional/two-regions.fixture.ts";
import { Good, Other } from "../simulation/goods.fixture.ts";
import {
	type Message,
	malformed,
	offering,
	scriptedImport,
	snapshot,
} from "./scripted-source.fixture.ts";

function many(type: ResourceType, count: number): readonly Message[] {
	return Array.from({ length: count }, (_, at) => malformed(type, `x${at}`));
}

function moved({ type }: ResourceType, version: string): Message {
	return { case: "position", value: { type: typeOf(type), version } };
}

/** An import that has left out 100 goods, which are named, and 50 others. */
async function withUnnamed() {
	const imported = await scriptedImport([Good, Other]);
	const { source, stop } = await imported.run();
	const stream = await source.opened(1);
	await stream.send([...snapshot(Good, many(Good, 100)), ...snapshot(Other, many(Other, 50))]);
	expect(await imported.record()).toMatchObject({ leftOutTotal: 150n });
	return { ...imported, source, stream, stop };
}

const everything = new Map([
	[Good.key, ""],
	[Other.key, ""],
]);

describe("what is left out beyond the first hundred", { timeout: 300_000 }, () => {
	it("is requested again after a restart, of whichever type it is", async () => {
		const { record, run, stop } = await withUnnamed();
		await stop();
		const { source } = await run();
		const stream = await source.opened(1);
		expect(stream.requested).toEqual(everything);
		await stream.send([...snapshot(Good, []), ...snapshot(Other, many(Other, 50))]);
		expect(await record()).toMatchObject({ leftOutTotal: 50n });
	});

	it("is requested until it has been sent, also if that is interrupted", async () => {
		const { record, run, stop } = await withUnnamed();
		await stop();
		const { source, stop: interrupt } = await run();
		// The peer has nothing more for now, since it has not begun with the other type.
		await (await source.opened(1)).send(snapshot(Good, []));
		expect((await record()).leftOutTotal).toBeGreaterThan(0n);
		await interrupt();
		const third = await run();
		const stream = await third.source.opened(1);
		expect(stream.requested.get(Other.key)).toBe("");
		await stream.send([...snapshot(Good, []), ...snapshot(Other, [])]);
		expect(await record()).toMatchObject({ leftOutTotal: 0n, leftOut: [] });
	});

	it("is counted by type when the peer is dialed again, and nothing is requested again", async () => {
		const { record, source, stream } = await withUnnamed();
		stream.end();
		const next = await source.opened(2);
		expect(next.requested).toEqual(
			new Map([
				[Good.key, "1"],
				[Other.key, "1"],
			]),
		);
		await next.send([...snapshot(Good, []), moved(Other, "2")]);
		expect(await record()).toMatchObject({ leftOutTotal: 50n, leftOut: [] });
		next.end();
		await (await source.opened(3)).send(snapshot(Other, []));
		expect(await record()).toMatchObject({ leftOutTotal: 0n });
	});
});

describe("what is left out of a type that is no longer streamed", { timeout: 300_000 }, () => {
	it("is forgotten when the type is no longer offered", async () => {
		const { record, run } = await scriptedImport([Good, Other]);
		const { source } = await run();
		const stream = await source.opened(1);
		await stream.send([...snapshot(Good, many(Good, 3)), ...snapshot(Other, many(Other, 2))]);
		expect(await record()).toMatchObject({ leftOutTotal: 5n });
		source.offered = offering([Good]);
		stream.end();
		await (await source.opened(2)).send([moved(Good, "2")]);
		expect(await record()).toMatchObject({
			leftOutTotal: 3n,
			leftOut: [{ type: Good.key }, { type: Good.key }, { type: Good.key }],
		});
	});

	it("is requested in the version that is streamed now", async () => {
		const { record, rewrite, run } = await scriptedImport([Good, LaterGood]);
		const first = await run();
		first.source.offered = offering([LaterGood]);
		await (await first.source.opened(1)).send(snapshot(LaterGood, []));
		await first.stop();
		// Former releases have kept what they had left out in another version.
		const former = { type: Good.key, namespace: "default", name: "x", reason: "malformed" };
		await rewrite({ leftOut: [create(LeftOutSchema, former)], leftOutTotal: 1n });
		const second = await run();
		second.source.offered = offering([LaterGood]);
		const stream = await second.source.opened(1);
		expect(stream.requested).toEqual(new Map([[LaterGood.key, ""]]));
		await stream.send(snapshot(LaterGood, []));
		expect(await record()).toMatchObject({ leftOutTotal: 0n, leftOut: [] });
	});
});
