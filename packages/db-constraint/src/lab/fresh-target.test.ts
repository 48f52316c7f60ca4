import { create } from "@bufbuild/protobuf";
import { referenceTo } from "@plinth/resource";
import { sleep } from "@plinth/runtime";
import { decorateBackend, type StorageBackend } from "@plinth/storage";
import { expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { Lab, make } from "./lab.fixture.ts";

const referrers = 64;
const writeMs = 1;
const needs = referenceTo({ type: Thing.type, name: "target" });

/** A lab, and a count of the commits of one deployment's storage, successful or not. */
function countedLab() {
	const lab = new Lab(1);
	let commits = 0;
	const counted = (backend: StorageBackend) =>
		decorateBackend(backend, {
			async commit(mutations, options) {
				commits += 1;
				// Commits that wait at the same time share one write to the disk.
				await sleep(lab.runtime.clock, writeMs);
				return backend.commit(mutations, options);
			},
		});
	const workOf = async (run: () => Promise<unknown>) => {
		const before = commits;
		const startMs = lab.runtime.clock.monotonic();
		await run();
		return { commits: commits - before, waitedMs: lab.runtime.clock.monotonic() - startMs };
	};
	return { lab, counted, workOf };
}

it("a new target of many writers of its deployment costs each of them one attempt more at most", async () => {
	const { lab, counted, workOf } = countedLab();
	const spec = { name: "alpha", service: "alpha", region: "", types: [Thing] };
	const alpha = await lab.add(spec, counted);
	await lab.run(alpha.write(make(Thing, "target", create(ThingSchema))));
	const work = await workOf(() =>
		lab.run(
			Promise.all(
				Array.from({ length: referrers }, (_, at) =>
					alpha.write(make(Thing, `referrer-${at}`, create(ThingSchema, { needs }))),
				),
			),
		),
	);
	// All but the one that has added the source read again, and find it. They wait for two writes, and nothing else.
	expect(work).toEqual({ commits: 2 * referrers - 1, waitedMs: 2 * writeMs });
});

it("a new target of many writers of another deployment is established in turn, without backoff", async () => {
	const { lab, counted, workOf } = countedLab();
	const alpha = await lab.add(
		{ name: "alpha", service: "alpha", region: "r1", types: [Thing] },
		counted,
	);
	const beta = await lab.add({
		...{ name: "beta", service: "beta", region: "r1" },
		...{ types: [Widget], foreignTypes: [Thing] },
	});
	await lab.run(alpha.write(make(Thing, "target", create(ThingSchema))));
	const work = await workOf(() =>
		lab.run(
			Promise.all(
				Array.from({ length: referrers }, (_, at) =>
					beta.write(make(Widget, `referrer-${at}`, create(WidgetSchema, { needs }))),
				),
			),
		),
	);
	// One establishment and one confirmation each, and a few that met.
	expect(work.commits).toBeLessThan(2.1 * referrers);
	expect((await alpha.shadow(alpha.id(Thing, "target")))?.sources).toHaveLength(1);
});

it("shadows that reference a target are visited once each while they change", async () => {
	const { lab, counted } = countedLab();
	const spec = { name: "alpha", service: "alpha", region: "", types: [Thing] };
	const alpha = await lab.add(spec, counted);
	await lab.run(alpha.write(make(Thing, "target", create(ThingSchema))));
	const write = (at: number, init: object) =>
		lab.run(alpha.write(make(Thing, `referrer-${at}`, create(ThingSchema, init))));
	for (let at = 0; at < 5; at++) {
		await write(at, { needs });
	}
	const index = alpha.running?.constraints.context.index;
	const key = lab.keyOf(alpha, alpha.id(Thing, "target"));
	await lab.pass(1_000);
	const visited: (string | undefined)[] = [];
	for (const { shadow } of index?.referencing(key) ?? []) {
		visited.push(shadow.resource?.name);
		if (visited.length === 2) {
			await write(0, { needs, likes: [needs] });
			await write(3, { needs, likes: [needs] });
			await write(4, {});
			await lab.pass(1_000);
		}
	}
	expect(visited).toEqual([0, 1, 2, 3].map((at) => `referrer-${at}`));
	expect([...(index?.referencing(key) ?? [])]).toHaveLength(4);
});
