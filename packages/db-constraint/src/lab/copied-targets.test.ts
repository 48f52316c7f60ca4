import { create } from "@bufbuild/protobuf";
import { OriginSchema } from "@plinth/proto";
import { newUlid } from "@plinth/resource";
import { describe, expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { restore } from "../deployments/settling.fixture.ts";
import { ResourceShadow } from "../shadow/shadow-records.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import type { Lab, LabDeployment } from "./lab.fixture.ts";
import { thing, to, twoDeployments, widget } from "./things.fixture.ts";

/** Stores a copy of a thing of another cluster. */
async function putCopy({ runtime }: Lab, { id, backend }: LabDeployment, name: string) {
	const resource = {
		...thing(name),
		id: { ...id(Thing, name), uid: newUlid(runtime) },
		generation: newUlid(runtime),
		origin: create(OriginSchema, { cluster: "west" }),
	};
	await backend.commit([{ op: "put", resource, expectedVersion: "" }]);
}

/** `w` of beta references `a` of alpha by BLOCK. */
async function referenced() {
	const { lab, alpha, beta } = await twoDeployments();
	await lab.run(alpha.write(thing("a")));
	const user = await lab.run(beta.write(widget("w", { needs: to("a") })));
	await lab.pass(3_000);
	return { lab, alpha, beta, user, w: beta.id(Widget, "w") };
}

describe("a target that is gone, whose name a copy of a resource of another cluster has", () => {
	it("is recorded as missing when its holder is restored", async () => {
		const { lab, alpha, beta, user, w } = await referenced();
		const { resources: shadows } = await beta.backend.list({
			type: ResourceShadow.type,
			tenancy: { partition: "", namespace: "" },
			namePrefix: "s-",
		});
		await lab.run(beta.write(widget("w")));
		await lab.run(alpha.delete(alpha.id(Thing, "a")));
		await lab.pass(60_000);
		await lab.run(putCopy(lab, alpha, "a"));
		const restored = await lab.succeed(beta, [user, ...shadows]);
		const { context } = restored.current.constraints;
		await lab.run(reestablishOwnReferences(context, new AbortController().signal));
		expect((await restored.shadow(w))?.outgoing).toMatchObject([{ targetUid: "" }]);
	});

	it("does not keep a successor from deleting", async () => {
		const { lab, alpha, beta, w } = await referenced();
		const x = await lab.run(alpha.write(thing("x")));
		const [{ targetUid = "" } = {}] = (await beta.shadow(w))?.outgoing ?? [];
		beta.crash();
		const restored = await restore(lab, alpha, [x]);
		await lab.run(putCopy(lab, restored, "a"));
		await lab.run(beta.start());
		await lab.pass(300_000);
		expect((await beta.shadow(w))?.outgoing).toMatchObject([
			{ targetUid: "", missing: { uid: targetUid } },
		]);
		await lab.run(restored.delete(restored.id(Thing, "x")));
		expect(await restored.read(restored.id(Thing, "x"))).toBeUndefined();
	});
});
