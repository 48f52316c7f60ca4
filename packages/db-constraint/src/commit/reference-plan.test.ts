import { create } from "@bufbuild/protobuf";
import type { Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { OutgoingReferenceSchema } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { describe, expect, it } from "vitest";
import { oneDeployment, thing, to } from "../lab/things.fixture.ts";
import { keyOf } from "../shadow/resource-key.ts";
import { newShadow } from "../shadow/shadow.ts";
import { CommitPlan, type ShadowEdit } from "./commit-plan.ts";
import { ReferencePlan } from "./reference-plan.ts";

/** Plans a write of a resource whose shadow records `count` references, and counts how often a record is read. */
async function planned(count: number, change: (likes: ReturnType<typeof to>[]) => typeof likes) {
	const { lab, alpha, id } = await oneDeployment();
	const { context } = alpha.current.constraints;
	await lab.run(alpha.write(thing("hub")));
	const stored = (await alpha.read(id("hub"))) as Resource;
	const key = keyOf(id("hub"), "");
	let reads = 0;
	const likes = Array.from({ length: count }, (_, at) => to(`t-${at}`));
	const outgoing = likes.map(({ name }) => {
		const target = keyOf(id(name), "");
		const field = { path: "likes", field: "4" };
		const init = { ...field, target, targetUid: `uid-${name}`, rule: OnDelete.UNSET };
		return new Proxy(create(OutgoingReferenceSchema, init), {
			get: (record, property) => {
				reads += 1;
				return Reflect.get(record, property);
			},
		});
	});
	const plan = new CommitPlan(context.backend, lab.runtime);
	const edit: ShadowEdit = await plan.shadow(key);
	edit.next = { ...newShadow(key, stored.id?.uid ?? ""), outgoing };
	const references = new ReferencePlan(context, plan, {
		...{ created: new Map(), deleted: new Set(), dryRun: false },
	});
	const next = thing("hub", { note: "changed", likes: change(likes) });
	await lab.run(references.add({ ...stored, ...(next.data && { data: next.data }) }, stored));
	return { reads, references, left: edit.next?.outgoing };
}

describe("the plan of references", () => {
	it.each([
		["that stay", (likes: ReturnType<typeof to>[]) => likes, 0],
		["of which one is removed", (likes: ReturnType<typeof to>[]) => likes.slice(1), 1],
		["in another order", (likes: ReturnType<typeof to>[]) => likes.toReversed(), 0],
	])("reads each record a few times, of many %s", async (_what, change, released) => {
		const count = 1_000;
		const { reads, references, left } = await planned(count, change);
		expect(left).toHaveLength(count - released);
		expect(references.released).toHaveLength(released);
		expect(reads).toBeLessThan(20 * count);
	});
});
