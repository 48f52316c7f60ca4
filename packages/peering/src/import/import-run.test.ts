import { typeOf } from "@plinth/resource";
import { expect, it } from "vitest";
import { Good, Other } from "../simulation/goods.fixture.ts";
import { original, scriptedImport, snapshot } from "./scripted-source.fixture.ts";

it("a quiet stream is recorded also after a clock that was ahead", {
	timeout: 300_000,
}, async () => {
	const { clock, record, run } = await scriptedImport([Good]);
	const { source } = await run();
	const stream = await source.opened(1);
	const hourMs = 3_600_000;
	clock.jump(hourMs);
	await stream.send(snapshot(Good, []));
	expect((await record()).currentMs).toBe(BigInt(clock.now()));
	clock.jump(-hourMs);
	await stream.send([{ case: "position", value: { type: typeOf(Good.type), version: "7" } }]);
	expect(await record()).toMatchObject({
		currentMs: BigInt(clock.now()),
		positions: [{ version: "7" }],
	});
});

it("no position covers what was skipped for lack of room, while a quiet type has not begun", {
	timeout: 300_000,
}, async () => {
	const { record, run } = await scriptedImport([Good, Other], 1);
	const { source } = await run();
	const first = await source.opened(1);
	first.push([
		...snapshot(Good, [original(Good, "ale")]),
		...snapshot(Other, [original(Other, "cup")]),
	]);
	for (const count of [2, 3]) {
		const stream = await source.opened(count);
		expect(stream.requested).toEqual(
			new Map([
				[Good.key, "1"],
				[Other.key, ""],
			]),
		);
		await stream.send(snapshot(Other, [original(Other, "cup")]));
		expect(await record()).toMatchObject({
			state: "TooManyCopies",
			positions: [{ type: typeOf(Good.type) }],
		});
		stream.push([{ case: "heartbeat", value: {} }]);
	}
});
