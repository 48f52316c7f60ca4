import { create } from "@bufbuild/protobuf";
import { OwnerReferenceSchema, type Resource } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { restore } from "../deployments/settling.fixture.ts";
import { shadowName } from "../shadow/shadow.ts";
import { readShadow } from "../shadow/shadow-records.ts";
import { Lab } from "./lab.fixture.ts";
import { thing, widget } from "./things.fixture.ts";

/** The widget `w` of beta is owned by `a` of alpha, which still runs when a release of beta serves the group of `a` too. */
async function moved() {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add({
		...{ name: "beta", service: "beta", region: "r1" },
		...{ types: [Widget], foreignTypes: [Thing] },
	});
	const a = await lab.run(alpha.write(thing("a")));
	const { type, tenancy, name = "", uid = "" } = a.id ?? {};
	const owner = create(OwnerReferenceSchema, {
		...{ name, uid, region: "r1" },
		...(type && { type }),
		...(tenancy && { tenancy }),
	});
	const w = beta.id(Widget, "w");
	await lab.run(beta.write({ ...widget("w"), ownerReferences: [owner] }));
	await lab.pass(5_000);
	const byAlpha = { valid: true, deploymentUid: alpha.info.uid };
	expect((await beta.shadow(w))?.metaOwners).toMatchObject([byAlpha]);
	beta.crash();
	Object.assign(beta.spec, { types: [Thing, Widget], foreignTypes: [] });
	await lab.run(beta.start());
	await lab.pass(120_000);
	return { lab, beta, w };
}

describe("an owner whose group moves into the service of what it owns", () => {
	it("is judged by the deployment that has confirmed it", async () => {
		const { lab, beta, w } = await moved();
		// A flag is changed, so that the owner is queried again.
		const stored = (await beta.read(w)) as Resource;
		const ownerReferences = stored.ownerReferences.map((each) => ({
			...each,
			unsetOnDelete: true,
		}));
		await lab.run(beta.write({ ...stored, ownerReferences }));
		await lab.pass(120_000);
		expect((await beta.read(w))?.ownerReferences).toHaveLength(1);
	});

	it("is so also by a successor of the deployment of what it owns", async () => {
		const { lab, beta, w } = await moved();
		const shadow = await readShadow(beta.backend, shadowName(lab.keyOf(beta, w)));
		const backup = [await beta.read(w), shadow?.resource].flatMap((each) => each ?? []);
		const after = await restore(lab, beta, backup);
		await lab.pass(120_000);
		expect(await after.read(w)).toBeDefined();
	});
});
