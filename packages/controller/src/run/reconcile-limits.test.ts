import { create } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { createInProcessTransport } from "@plinth/in-process";
import { ControllerService, ResourceSchema } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { defineController } from "../define/controller.ts";
import { Artist, demo } from "../demo-types.fixture.ts";
import { createControllerService } from "../manager/controller-service.ts";
import { TestBench } from "../running-manager.fixture.ts";

describe("a reconcile that asks to be repeated after a delay that is none", () => {
	it.each([Number.NaN, Number.POSITIVE_INFINITY, -1])(
		"fails for %s, and delays no other key",
		async (afterMs) => {
			await using bench = new TestBench();
			const calls: Record<string, number> = {};
			const controller = defineController({
				name: "artist",
				manages: Artist,
				async reconcile(_, { id }) {
					calls[id.name] = (calls[id.name] ?? 0) + 1;
					return { afterMs: id.name === "bad" ? afterMs : 1_000 };
				},
			});
			bench.service.put(demo(Artist, "bad"));
			bench.service.put(demo(Artist, "good"));
			await bench.start([controller]);
			await bench.advance(10_000);
			expect(calls.good).toBe(11);
			expect(calls.bad).toBeGreaterThan(1);
			const failed = bench.log.find(({ message }) => message === "reconcile failed");
			expect(failed?.fields.key).toContain("bad");
			expect(`${failed?.fields.err}`).toContain(`got ${afterMs}`);
			const { succeeded, failed: failures } = bench.state("artist").reconciles;
			expect({ succeeded, failures }).toEqual({ succeeded: 11, failures: calls.bad });
		},
	);
});

describe("the time limits of reconciles", () => {
	it("report after a minute, abort after five, count it as failed and try again", async () => {
		await using bench = new TestBench();
		bench.service.put(demo(Artist, "miles"));
		const starts: number[] = [];
		const controller = defineController({
			name: "slow",
			manages: Artist,
			reconcile(context) {
				starts.push(bench.clock.monotonic());
				return new Promise((resolve) => context.signal.addEventListener("abort", () => resolve()));
			},
		});
		const manager = await bench.start([controller]);
		await bench.advance(59_999);
		expect(bench.messages("warn")).toEqual([]);
		await bench.advance(1);
		const [line] = bench.log.filter(({ level }) => level === "warn");
		expect(line).toMatchObject({
			message: "reconcile is still running",
			fields: { controller: "slow", runningMs: 60_000, limitMs: 300_000 },
		});
		const key = String(line?.fields.key);
		expect(key).toContain("miles");

		await bench.advance(30_000);
		expect(bench.state("slow").run?.stillRunning).toEqual([{ key, runningMs: 90_000 }]);
		const transport = createInProcessTransport((router) => {
			router.service(
				ControllerService,
				createControllerService(manager, {
					read: async (id) => create(ResourceSchema, id && { id }),
				}),
			);
		});
		const { controllers } = await createClient(ControllerService, transport).listControllers({});
		expect(controllers[0]?.stillRunning).toMatchObject([{ key, running: { seconds: 90n } }]);
		expect(controllers[0]?.overdue).toEqual([]);

		await bench.advance(210_000);
		expect(bench.messages("error")).toEqual(["reconcile exceeded its time limit and was aborted"]);
		const failed = bench.log.find(({ message }) => message === "reconcile failed");
		expect(`${failed?.fields.err}`).toBe(
			`TimeLimitError: ${key} exceeded its time limit of 300000 ms and was aborted`,
		);
		expect(bench.state("slow").reconciles).toMatchObject({ succeeded: 0, failed: 1, overdue: 1 });
		await bench.advance(2);
		expect(starts).toEqual([0]);
		// The backoff of 5 ms has jitter.
		await bench.advance(6);
		expect(starts).toHaveLength(2);
	});

	it("can be set per controller, and must be more than 0", async () => {
		await using bench = new TestBench();
		const controller = { name: "odd", manages: Artist, async reconcile() {} };
		const refused = bench.start([defineController({ ...controller, slowReconcileMs: 0 })]);
		await expect(refused).rejects.toThrow(
			"controller odd: slowReconcileMs must be more than 0, got 0",
		);
	});
});
