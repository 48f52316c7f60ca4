import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { Lifecycle } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { describe, expect, it } from "vitest";
import { Thing } from "../../testdata/types.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { updateDeploymentRecord } from "../succession/deployment-record.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import { Lab } from "./lab.fixture.ts";
import { thing, to } from "./things.fixture.ts";

const { BLOCK, CASCADE, UNSET } = OnDelete;
const never = new AbortController().signal;

/** More than fit in a commit with all that it asserts. */
const names = Array.from({ length: 110 }, (_, at) => `t${at}`);

/** `w` references by CASCADE many things of its own deployment, which are being deleted, and is referenced by BLOCK. */
async function deleting() {
	const lab = new Lab(1);
	const types = [withRules(Thing, { likes: CASCADE })];
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "", types });
	const likes = names.map((name) => to(name));
	for (const name of names) {
		await lab.run(alpha.write(thing(name)));
	}
	// One write has room for only so many.
	for (let count = 30; count < likes.length + 30; count += 30) {
		await lab.run(alpha.write(thing("w", { likes: likes.slice(0, count) })));
	}
	await lab.run(alpha.write(thing("x", { needs: to("w") })));
	for (const name of names) {
		await lab.run(alpha.delete(alpha.id(Thing, name)));
		expect((await alpha.shadow(alpha.id(Thing, name)))?.lifecycle).toBe(Lifecycle.DELETING);
	}
	const recorded = async () => (await alpha.shadow(alpha.id(Thing, "w")))?.outgoing ?? [];
	return { lab, alpha, recorded };
}

describe("many targets in the own deployment that are being deleted", () => {
	it.each([
		["UNSET", UNSET],
		["BLOCK", BLOCK],
	])("are recorded by the new rule when a schema changes that (%s)", async (_name, rule) => {
		const { lab, alpha, recorded } = await deleting();
		const types = [withRules(Thing, { likes: rule })];
		const descriptor = new ServiceDescriptor({ types, service: "alpha" });
		const pass = new SchemaPass({ ...alpha.current.constraints.context, descriptor });
		await lab.run(pass.begin());
		await lab.run(pass.complete(never));
		const outgoing = await recorded();
		expect(outgoing).toHaveLength(names.length);
		expect(new Set(outgoing.map((each) => each.rule))).toEqual(new Set([rule]));
		expect(outgoing.filter(({ targetUid }) => targetUid === "")).toEqual([]);
	});

	it("do not keep the deployment from starting after a restore", async () => {
		const { lab, alpha, recorded } = await deleting();
		const before = await recorded();
		const { context } = alpha.current.constraints;
		const { uid } = context.environment.self;
		const next = { uid: "01KDVDZZZZZZZZZZZZZZZZZZZZ", predecessorUid: uid, established: false };
		await updateDeploymentRecord(alpha.backend, lab.runtime, (record) => ({ ...record, ...next }));
		Object.assign(alpha.info, next);
		expect(await lab.run(reestablishOwnReferences(context, never))).toBe(true);
		expect(await recorded()).toEqual(before);
	});

	it("do not keep a pass from its end if a new schema adds their field", async () => {
		const { lab, alpha, recorded } = await deleting();
		const types = [withRules(Thing, { likes: undefined })];
		for (const schema of [types, [withRules(Thing, { likes: CASCADE })]]) {
			const descriptor = new ServiceDescriptor({ types: schema, service: "alpha" });
			const pass = new SchemaPass({ ...alpha.current.constraints.context, descriptor });
			await lab.run(pass.begin());
			await lab.run(pass.complete(never));
		}
		const outgoing = await recorded();
		expect(outgoing.map(({ targetUid }) => targetUid)).toEqual(names.map(() => ""));
	});
});
