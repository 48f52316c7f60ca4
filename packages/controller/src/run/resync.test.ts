import type { ID } from "@plinth/proto";
import { idOf } from "@plinth/resource";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { Artist } from "../demo-types.fixture.ts";
import { Resync } from "./resync.ts";

const hour = 3_600_000;

function setUp(count: number) {
	const clock = new FakeClock();
	const ids: ID[] = Array.from({ length: count }, (_, at) => idOf(Artist, `artist-${at}`));
	const due: { readonly name: string; readonly atMs: number }[] = [];
	const resync = new Resync({
		clock,
		periodMs: 8 * hour,
		all: () => [...ids],
		onDue: (id) => due.push({ name: id.name, atMs: clock.monotonic() }),
	});
	return { clock, ids, due, resync };
}

describe("Resync", () => {
	it("brings up each resource once a period, spread evenly over it", () => {
		const { clock, due, resync } = setUp(1000);
		resync.start();
		clock.advance(8 * hour);
		expect(new Set(due.map(({ name }) => name)).size).toBe(1000);
		expect(due.length).toBe(1000);
		for (let part = 0; part < 8; part++) {
			const inHour = due.filter(({ atMs }) => atMs > part * hour && atMs <= (part + 1) * hour);
			expect(inHour.length).toBeGreaterThanOrEqual(124);
			expect(inHour.length).toBeLessThanOrEqual(126);
		}
	});

	it("keeps the period of each resource", () => {
		const { clock, due, resync } = setUp(100);
		resync.start();
		clock.advance(24 * hour);
		const times = due.filter(({ name }) => name === "artist-42").map(({ atMs }) => atMs);
		expect(times.length).toBe(3);
		expect((times[1] ?? 0) - (times[0] ?? 0)).toBe(8 * hour);
	});

	it("includes newly created resources in the next round", () => {
		const { clock, ids, due, resync } = setUp(0);
		resync.start();
		clock.advance(hour);
		ids.push(idOf(Artist, "late"));
		clock.advance(15 * hour);
		expect(due.map(({ name }) => name)).toEqual(["late"]);
	});

	it("does nothing more once it is stopped", () => {
		const { clock, due, resync } = setUp(10);
		resync.start();
		resync.stop();
		clock.advance(24 * hour);
		expect(due).toEqual([]);
		expect(clock.nextTimerMs()).toBeUndefined();
	});
});
