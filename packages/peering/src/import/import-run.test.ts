import { typeOf } from "@plinth/resource";
import { expect, it } from "vitest";
import { Good } from "../simulation/goods.fixture.ts";
import { scriptedImport, snapshot } from "./scripted-source.fixture.ts";

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
