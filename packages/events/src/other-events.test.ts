import { describe, expect, it } from "vitest";
import type { DecodedRow } from "./event-rows.ts";
import { artist } from "./events.fixture.ts";
import { OtherEvents } from "./other-events.ts";
import type { RecordedEvent } from "./recorded-event.ts";

function event(name: string, init: Partial<RecordedEvent> = {}): RecordedEvent {
	return {
		...{ id: `id of ${name}`, resource: artist(name), severity: "normal", reason: "Booked" },
		...{ message: "booked", source: "booking", server: "one", count: 1, firstMs: 1, lastMs: 1 },
		...init,
	};
}

const row = (owner: string, name: string, ...events: readonly RecordedEvent[]): DecodedRow => ({
	...{ owner, key: name, events },
});

describe("the events of others", () => {
	it("tell of what is new or has occurred again, and of nothing else", () => {
		const changed: RecordedEvent[] = [];
		const others = new OtherEvents((each) => changed.push(each));
		others.apply([row("a", "miles", event("miles"))]);
		others.apply([row("a", "miles", event("miles"), event("miles", { id: "2" }))]);
		others.apply([row("a", "miles", event("miles", { count: 2 }), event("miles", { id: "2" }))]);
		expect(changed.map(({ id, count }) => [id, count])).toEqual([
			["id of miles", 1],
			["2", 1],
			["id of miles", 2],
		]);
		expect(others.size).toBe(2);
	});

	it("are replaced by all that there are", () => {
		const others = new OtherEvents(() => {});
		others.apply([row("a", "miles", event("miles")), row("b", "miles", event("miles"))]);
		others.replace([row("b", "miles", event("miles")), row("c", "trane", event("trane"))]);
		expect([...others.of("miles")]).toHaveLength(1);
		expect(others.size).toBe(2);
		others.apply([row("b", "miles")]);
		expect([...others.all()]).toMatchObject([{ resource: { name: "trane" } }]);
		others.expire(3_600_002, 3_600_000);
		expect(others.size).toBe(0);
	});

	it("are bounded: those of the process that has started first are dropped", () => {
		const others = new OtherEvents(() => {});
		for (const owner of ["01C", "01A", "01B"]) {
			others.apply(
				Array.from({ length: 20_000 }, (_, n) =>
					row(owner, `a${n}`, event(`a${n}`, { server: owner })),
				),
			);
		}
		expect(others.size).toBe(40_000);
		expect([...others.of("a7")].map(({ server }) => server)).toEqual(["01C", "01B"]);
	});
});
