import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { ensureDefaultTenancy } from "@plinth/resource-service";
import { sleep, systemRuntime } from "@plinth/runtime";
import { type SeededRuntime, seededRuntime } from "@plinth/runtime/testing";
import { createMemoryBackend } from "@plinth/storage";
import { delayedBackend } from "@plinth/storage/testing";
import { createSqliteBackend } from "@plinth/storage-sqlite";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type DrawnStep, type DrawnWork, drawnWork } from "./drawn-work.fixture.ts";
import { NaiveModel } from "./naive-model.fixture.ts";
import { type DrawnSchema, typesOf } from "./random-schema.fixture.ts";
import { SoleDeployment } from "./sole-deployment.fixture.ts";

const numRuns = 50;
const quick = { requeryMs: 20, maxRetryDelayMs: 5, resolveRetryMs: 50 };

/** Takes a step. Returns whether it was allowed. */
async function attempt(sole: SoleDeployment, step: DrawnStep): Promise<boolean> {
	try {
		switch (step.kind) {
			case "write":
				await sole.write(step.key, step.references, step.isHeld);
				return true;
			case "delete":
				await sole.delete(step.key);
				return true;
			case "release":
				await sole.release(step.key);
				return true;
		}
	} catch {
		return false;
	}
}

function inModel(model: NaiveModel, step: DrawnStep): boolean {
	switch (step.kind) {
		case "write":
			return model.write(step.key, step.references, step.isHeld);
		case "delete":
			return model.delete(step.key);
		case "release":
			model.release(step.key);
			return true;
	}
}

async function inMemory(seed: number, schema: DrawnSchema, isDelayed: boolean) {
	const runtime = seededRuntime({ seed, maxSteps: 300_000 });
	const memory = createMemoryBackend({ runtime });
	await ensureDefaultTenancy(memory, runtime);
	const backend = isDelayed ? delayedBackend(memory, runtime) : memory;
	const types = typesOf(schema);
	const sole = new SoleDeployment({ backend, runtime, schema, types });
	await runtime.scheduler.run(sole.start());
	return { runtime, sole };
}

/** Inconsistencies after everything has settled. */
async function problems(runtime: SeededRuntime, sole: SoleDeployment) {
	const { scheduler } = runtime;
	return {
		dangling: await scheduler.run(sole.dangling()),
		orphans: await scheduler.run(sole.orphans()),
	};
}

const settled = { dangling: [], orphans: [] };

describe("the constraint store with generated schemas", () => {
	it("behaves like the naive model, step by step", async () => {
		const work = fc.tuple(fc.integer(), drawnWork(25));
		const property = fc.asyncProperty(work, async ([seed, { schema, steps }]) => {
			const { runtime, sole } = await inMemory(seed, schema, false);
			const model = new NaiveModel();
			for (const step of steps) {
				const allowed = await runtime.scheduler.run(attempt(sole, step));
				await runtime.scheduler.advance(30_000);
				expect({ allowed, stored: await sole.describe() }).toEqual({
					allowed: inModel(model, step),
					stored: model.describe(),
				});
			}
			expect(await problems(runtime, sole)).toEqual(settled);
			void sole.stop();
		});
		await fc.assert(property, { numRuns });
	});

	it("leaves no dangling references with concurrent callers", async () => {
		const work = fc.tuple(fc.integer(), drawnWork(40));
		const property = fc.asyncProperty(work, async ([seed, { schema, steps }]) => {
			const { runtime, sole } = await inMemory(seed, schema, true);
			const written = new Set<string>();
			const callers = [0, 1, 2, 3].map(async (caller) => {
				for (const step of steps.filter((_, at) => at % 4 === caller)) {
					if ((await attempt(sole, step)) && step.kind === "write") {
						written.add(step.key);
					}
				}
			});
			await runtime.scheduler.run(Promise.all(callers));
			await runtime.scheduler.advance(120_000);
			expect(await problems(runtime, sole)).toEqual(settled);
			const now = await runtime.scheduler.run(sole.model());
			const survivors = now.describe();
			now.settle();
			expect(survivors, "everything has settled").toEqual(now.describe());
			const deleted = deletable(steps);
			const lost = [...written].filter((key) => !deleted.has(key) && !now.resources.has(key));
			expect(lost, "deleted without a request").toEqual([]);
			expect(sole.failures).toEqual([]);
			void sole.stop();
		});
		await fc.assert(property, { numRuns });
	});

	it("behaves like the naive model on a sqlite file", async () => {
		const folder = await mkdtemp(join(tmpdir(), "plinth-references-"));
		try {
			let files = 0;
			const property = fc.asyncProperty(drawnWork(10), async (work) => {
				files += 1;
				await onSqlite(join(folder, `${files}.db`), work);
			});
			await fc.assert(property, { numRuns: 4 });
		} finally {
			await rm(folder, { recursive: true, force: true });
		}
	});
});

/** The resources that a step deletes, and all that may cascade from them. */
function deletable(steps: readonly DrawnStep[]): ReadonlySet<string> {
	const keys = new Set(steps.filter(({ kind }) => kind === "delete").map(({ key }) => key));
	for (let before = -1; before !== keys.size; ) {
		before = keys.size;
		for (const step of steps) {
			const references = step.kind === "write" ? step.references : [];
			if (references.some(({ rule, target }) => rule === OnDelete.CASCADE && keys.has(target))) {
				keys.add(step.key);
			}
		}
	}
	return keys;
}

async function onSqlite(path: string, { schema, steps }: DrawnWork): Promise<void> {
	const runtime = systemRuntime;
	const backend = await createSqliteBackend({ path });
	const types = typesOf(schema);
	await ensureDefaultTenancy(backend, runtime);
	const sole = new SoleDeployment({ backend, runtime, schema, types, limits: quick });
	try {
		await sole.start();
		const model = new NaiveModel();
		for (const step of steps) {
			expect(await attempt(sole, step)).toBe(inModel(model, step));
			const expected = model.describe();
			for (let tries = 0; tries < 2_000; tries++) {
				if (JSON.stringify(await sole.describe()) === JSON.stringify(expected)) {
					break;
				}
				await sleep(runtime.clock, 2);
			}
			expect(await sole.describe()).toEqual(expected);
		}
		expect(await sole.dangling()).toEqual([]);
	} finally {
		await sole.stop();
		await backend.close();
	}
}
