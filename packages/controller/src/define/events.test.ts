import type { EventInit, EventRecord } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Album, Artist, demo } from "../demo-types.fixture.ts";
import { TestBench } from "../running-manager.fixture.ts";
import type { ReconcileContext } from "./context.ts";
import { defineController } from "./controller.ts";

async function eventsOf(
	reconcile: (context: ReconcileContext) => void | Promise<void>,
	afterMs = 0,
): Promise<{ readonly events: readonly EventRecord[]; readonly bench: TestBench }> {
	await using bench = new TestBench();
	const events: EventRecord[] = [];
	bench.service.put(demo(Artist, "miles"));
	const controller = defineController({
		...{ name: "booking", manages: Artist },
		reconcile: async (context) => reconcile(context),
	});
	await bench.start([controller], { events: { record: (event) => void events.push(event) } });
	await bench.advance(afterMs);
	return { events, bench };
}

describe("events", () => {
	it("are of the reconciled resource, and say which controller has recorded them", async () => {
		const { events } = await eventsOf((context) =>
			context.event({ reason: "Booked", message: "the gig was booked" }),
		);
		expect(events).toMatchObject([
			{
				resource: { name: "miles", tenancy: { partition: "default", namespace: "default" } },
				...{ reason: "Booked", message: "the gig was booked" },
				...{ severity: "normal", source: "booking" },
			},
		]);
		expect(events[0]?.resource.uid).not.toBe("");
	});

	it("can be of another resource", async () => {
		const album = demo(Album, "kind-of-blue").id;
		const { events } = await eventsOf((context) =>
			context.event({ reason: "Sold", message: "sold", severity: "warning" }, album),
		);
		expect(events).toMatchObject([{ resource: { name: "kind-of-blue" }, severity: "warning" }]);
	});

	it.each([
		[{ reason: "not one word", message: "x" }, "is one word in upper camel case"],
		[{ reason: "booked", message: "x" }, 'as in Provisioned, got "booked"'],
		[{ reason: "Booked", message: " " }, "the message of the event Booked is empty"],
		[
			{ reason: "Booked", message: "x", severity: "fatal" as "warning" },
			'is normal or warning, got "fatal"',
		],
	] satisfies [EventInit, string][])(
		"are refused if they are malformed: %o",
		async (event, problem) => {
			const { bench } = await eventsOf((context) => context.event(event));
			const failed = bench.log.find(({ message }) => message === "reconcile failed");
			expect(String(failed?.fields.err)).toContain(problem);
		},
	);

	it("say what has failed, by the message of the error", async () => {
		const { events } = await eventsOf(() => {
			throw new Error("the venue does not respond");
		}, 100);
		expect(events.length).toBeGreaterThan(1);
		expect(events[0]).toMatchObject({
			...{ reason: "ReconcileFailed", message: "the venue does not respond" },
			...{ severity: "warning", source: "booking", resource: { name: "miles" } },
		});
	});

	it("say what has failed, also if the error has a message that is no text", async () => {
		const { events } = await eventsOf(() => {
			throw Object.assign(new Error("x"), { message: Object.create(null) });
		}, 10);
		expect(events[0]).toMatchObject({ message: "an error without a message" });
	});

	it("say which reconcile does not end", async () => {
		const { events } = await eventsOf(() => new Promise<void>(() => {}), 300_000);
		expect(events).toMatchObject([
			{
				reason: "ReconcileOverdue",
				message:
					"the reconcile exceeded its time limit of 300 s and was aborted; it has not ended yet",
				resource: { name: "miles" },
			},
		]);
	});
});
