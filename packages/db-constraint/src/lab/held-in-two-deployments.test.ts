import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { describe, expect, it } from "vitest";
import { LostDeployments } from "../controller/lost-deployments.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import {
	addSecond,
	applyDeletion,
	beginDeletion,
	nextSchema,
	referenced,
	writeAsUser,
} from "./shared-targets.fixture.ts";
import { to, widget } from "./things.fixture.ts";

const { BLOCK, CASCADE, UNSET } = OnDelete;
const never = new AbortController().signal;
const fields = { needs: to("a"), likes: [to("a")] };

/**
 * `needs` of the widget holds `a` of alpha by UNSET, and `likes` holds that of alpha-2, which was registered later. A new
 * schema, which has begun, gives UNSET to `likes`.
 */
async function begun() {
	const world = await referenced({ needs: to("a") }, { needs: UNSET, likes: BLOCK });
	const { lab, alpha, beta, recorded } = world;
	const second = await addSecond(world);
	await lab.run(beta.write(widget("w", fields)));
	await lab.pass(3_000);
	const { needs, likes } = Object.fromEntries(await recorded());
	expect(needs).toMatchObject({ rule: UNSET, deploymentUid: alpha.info.uid });
	expect(likes).toMatchObject({ rule: BLOCK, deploymentUid: second.info.uid });
	const next = nextSchema(world, { needs: CASCADE, likes: UNSET });
	await lab.run(next.pass.begin());
	return { ...world, second, ...next };
}

describe("a field that holds a resource in another deployment than a second one, whose former rule it gets", () => {
	it("is not cleared with that", async () => {
		const world = await begun();
		const { alpha, beta, descriptor, w } = world;
		await beginDeletion(world, alpha);
		const before = await beta.read(w);
		await applyDeletion(world, descriptor, "needs");
		expect(await beta.read(w)).toEqual(before);
	});

	it("is not cleared if the other deployment is deleted", async () => {
		const { lab, alpha, beta, descriptor, w } = await begun();
		alpha.crash();
		lab.deployments.delete("alpha");
		lab.deleted.add(alpha.info.uid);
		const before = await beta.read(w);
		const context = { ...beta.current.constraints.context, descriptor };
		const stored = await readShadow(beta.backend, shadowName(lab.keyOf(beta, w)));
		if (stored === undefined) {
			throw new Error("the widget has no shadow");
		}
		await lab.run(new LostDeployments(context, beta.withDescriptor(descriptor)).check(stored));
		expect((await beta.read(w))?.data).toEqual(before?.data);
	});

	it("keeps its deployment when its new rule is derived", async () => {
		const { lab, alpha, second, pass, recorded } = await begun();
		await lab.run(pass.complete(never));
		const { needs, likes } = Object.fromEntries(await recorded());
		expect(needs).toMatchObject({ rule: CASCADE, deploymentUid: alpha.info.uid });
		expect(likes).toMatchObject({ rule: UNSET, deploymentUid: second.info.uid });
	});

	it("keeps its deployment when a user writes another field before", async () => {
		const world = await begun();
		const { descriptor, second, recorded } = world;
		await writeAsUser(world, descriptor, { ...fields, note: "changed" });
		expect((await recorded()).get("likes")).toMatchObject({ deploymentUid: second.info.uid });
	});
});

describe("two fields with one target and one rule", () => {
	it("are recorded each, so that one of them is cleared though a schema has changed the rule of the other one", async () => {
		const world = await referenced(fields, { needs: UNSET, likes: UNSET });
		const { lab, alpha, beta, w, recorded } = world;
		expect([...(await recorded()).keys()]).toEqual(["needs", "likes"]);
		const { descriptor, pass } = nextSchema(world, { needs: UNSET, likes: BLOCK });
		await lab.run(pass.begin());
		await beginDeletion(world, alpha);
		await applyDeletion(world, descriptor, "needs");
		const stored = await beta.read(w);
		const left = stored === undefined ? [] : descriptor.referencesOf(stored);
		expect(left.map(({ path }) => path)).toEqual(["likes"]);
		expect((await recorded()).get("likes")?.targetUid).not.toBe("");
	});
});
