import { idOf } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { defineController } from "../define/controller.ts";
import { watch } from "../define/watch.ts";
import { Album, Artist, type DemoType, demo, text } from "../demo-types.fixture.ts";
import { sameNameAs } from "../mappers/same-name.ts";
import { TestBench } from "../running-manager.fixture.ts";
import { RequestCauses, WriteChains } from "./write-chains.ts";

const message = /^reconciles trigger each other: /;

/** Reconciles one type by writing the other under the same name, with a value that depends on its own. */
function writing([manages, other]: readonly [DemoType, DemoType], next: (value: string) => string) {
	return defineController({
		name: `${manages.type.kind.toLowerCase()}s`,
		manages,
		watches: [watch(other, { map: sameNameAs(manages) })],
		async reconcile(context, { id }) {
			await sleep(context.clock, 5);
			const value = context.cache.get(manages, id)?.data.value ?? "";
			await context.writeIfChanged(other, {
				id: idOf(other, id.name),
				data: text(other, next(value)),
			});
		},
	});
}

/** Lets a manager work for so many turns. */
async function work(bench: TestBench, turns: number, each: (turn: number) => void = () => {}) {
	for (let turn = 0; turn < turns; turn++) {
		each(turn);
		await bench.advance(10);
	}
}

const warnings = (bench: TestBench) => bench.messages("warn").filter((line) => message.test(line));

describe("controllers that trigger each other", () => {
	it("are found once for each resource, with the types of their cycle, and only when they do", async () => {
		await using bench = new TestBench();
		const increment = (value: string) => `${Number(value) + 1}`;
		bench.service.put(demo(Artist, "nina", "1"));
		await bench.start([writing([Artist, Album], increment), writing([Album, Artist], increment)]);
		expect(warnings(bench)).toEqual([]);
		await work(bench, 400);
		const expected =
			"reconciles trigger each other: their types depend on each other: demo.v1.Album -> demo.v1.Artist -> demo.v1.Album";
		// One for each of the two resources.
		expect(warnings(bench)).toEqual([expected, expected]);
		for (const name of ["artists", "albums"]) {
			const { endlessChain } = bench.state(name).reconciles;
			expect(endlessChain?.key).toMatch(/\/nina$/);
			expect(endlessChain?.length).toBeGreaterThanOrEqual(200);
		}
	});

	it("are not suspected while they reach what they want, however often users change something", async () => {
		await using bench = new TestBench();
		const same = (value: string) => value;
		await bench.start([writing([Artist, Album], same), writing([Album, Artist], same)]);
		await work(bench, 500, (turn) => bench.service.put(demo(Artist, "nina", `${turn}`)));
		expect(bench.state("artists").reconciles.succeeded).toBeGreaterThan(300);
		expect(warnings(bench)).toEqual([]);
	});

	it("are not suspected if a reconcile writes each time that it asks to be repeated", async () => {
		await using bench = new TestBench();
		bench.service.put(demo(Artist, "nina"));
		let writes = 0;
		const counting = defineController({
			name: "counting",
			manages: Artist,
			async reconcile(context, { id }) {
				writes += 1;
				await context.write(Album, { id: idOf(Album, id.name), data: text(Album, `${writes}`) });
				return { afterMs: 10 };
			},
		});
		await bench.start([counting]);
		await work(bench, 400);
		expect(writes).toBeGreaterThan(300);
		expect(warnings(bench)).toEqual([]);
	});

	it("are found if a controller only triggers itself", async () => {
		await using bench = new TestBench();
		bench.service.put(demo(Artist, "nina", "1"));
		const self = defineController({
			name: "self",
			manages: Artist,
			async reconcile(context, { id }) {
				await sleep(context.clock, 5);
				const current = context.cache.get(Artist, id);
				const data = text(Artist, `${Number(current?.data.value) + 1}`);
				await context.write(Artist, { id, data, version: current?.resource.version ?? "" });
			},
		});
		await bench.start([self]);
		await work(bench, 300);
		expect(warnings(bench)).toEqual([
			"reconciles trigger each other: what they write requests the next one; `when` can leave out changes that need none",
		]);
	});
});

describe("the causes of requests", () => {
	it("continue the shortest chain, and begin a new one if anything else requests the key", () => {
		fc.assert(
			fc.property(
				fc.array(fc.option(fc.nat(6), { nil: undefined }), { minLength: 1 }),
				(requests) => {
					const chains = new WriteChains(new FakeClock());
					// The writes 0 to 4 end chains of 1 to 5; the others are somebody else's.
					for (let write = 0; write < 5; write++) {
						chains.wrote("a", `${write}`, write);
					}
					const causes = new RequestCauses(chains);
					for (const write of requests) {
						causes.add("a", write === undefined ? undefined : `${write}`);
					}
					const lengths = requests.map((write) =>
						write === undefined || write > 4 ? 0 : write + 1,
					);
					expect(chains.lengthBefore(causes.take("a"))).toBe(Math.min(...lengths));
					expect(causes.take("a")).toBe(0);
				},
			),
		);
	});

	it("count a write whose event is faster than its response", () => {
		const chains = new WriteChains(new FakeClock());
		const causes = new RequestCauses(chains);
		chains.wrote("b", "other", 0);
		causes.add("a", "fast");
		const cause = causes.take("a");
		chains.wrote("b", "fast", 7);
		expect(chains.lengthBefore(cause)).toBe(8);
	});

	it("are forgotten with the keys that are dropped", () => {
		const chains = new WriteChains(new FakeClock());
		const causes = new RequestCauses(chains);
		chains.wrote("b", "write", 7);
		causes.add("a", "write");
		causes.add("b", "write");
		causes.drop((key) => key === "a");
		expect([causes.take("a"), causes.take("b")]).toEqual([0, 8]);
	});
});

describe("chains of writes", () => {
	it("are reported once an hour for each key", () => {
		const clock = new FakeClock();
		const chains = new WriteChains(clock);
		expect(chains.wrote("a", "1", 198)).toBeUndefined();
		expect(chains.wrote("a", "2", 199)).toMatchObject({ key: "a", length: 200 });
		expect(chains.wrote("a", "3", 200)).toBeUndefined();
		expect(chains.wrote("b", "4", 200)).toMatchObject({ key: "b", length: 201 });
		clock.advance(3_600_000);
		expect(chains.wrote("a", "5", 900)).toMatchObject({ key: "a", length: 901 });
	});

	it("are kept for the last 10,000 writes", () => {
		const chains = new WriteChains(new FakeClock());
		for (let at = 0; at <= 10_000; at++) {
			chains.wrote("a", `${at}`, 0);
		}
		expect([chains.lengthOf("0"), chains.lengthOf("1"), chains.lengthOf("10000")]).toEqual([
			undefined,
			1,
			1,
		]);
	});
});
