import { create } from "@bufbuild/protobuf";
import { OwnerReferenceSchema, type Resource } from "@plinth/proto";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { expect, it } from "vitest";
import { Thing, Widget } from "../../testdata/types.ts";
import { deletion } from "../commit/removals.ts";
import { SchemaPass } from "../schema/schema-pass.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { withRules } from "../simulation/schemas.fixture.ts";
import { readDeploymentRecord } from "../succession/deployment-record.ts";
import { reestablishOwnReferences } from "../succession/succession.ts";
import { Lab } from "./lab.fixture.ts";
import { hooked, thing, to, widget } from "./things.fixture.ts";

const never = new AbortController().signal;

it("a successor whose schema is incomplete knows the holders of its owners", async () => {
	let begun: Promise<void> | undefined;
	const untilBegun = hooked(async (method) => {
		if (method === "CheckMetaOwners") {
			await begun;
		}
	});
	const lab = new Lab(1, {}, untilBegun);
	const types = [withRules(Widget, { needs: OnDelete.UNSET })];
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add({
		...{ name: "beta", service: "beta", region: "r1" },
		...{ types, foreignTypes: [Thing] },
	});
	// `owner` of beta owns `owned` of alpha, which it must reference.
	const [owner, owned] = [beta.id(Widget, "owner"), alpha.id(Thing, "owned")];
	const { id } = await lab.run(beta.write(widget("owner")));
	const reference = create(OwnerReferenceSchema, {
		...{ name: id?.name ?? "", uid: id?.uid ?? "", region: "r1", requiresOwnerReference: true },
		...(id?.type && { type: id.type }),
		...(id?.tenancy && { tenancy: id.tenancy }),
	});
	await lab.run(alpha.write({ ...thing("owned"), ownerReferences: [reference] }));
	const stored = await lab.run(beta.write(widget("owner", { needs: to("owned") })));
	await lab.pass(60_000);
	// A backup from before the release in which `needs` is a reference is restored, and that release is started again.
	const { promise, resolve } = Promise.withResolvers<void>();
	begun = promise;
	Object.assign(beta.spec, { types: [withRules(Widget, { needs: undefined })] });
	const restored = await lab.succeed(beta, [stored]);
	const { context } = restored.current.constraints;
	await lab.run(reestablishOwnReferences(context, never));
	Object.assign(restored.info, { established: true });
	const descriptor = new ServiceDescriptor({ types, foreignTypes: [Thing], service: "beta" });
	const pass = new SchemaPass({ ...context, descriptor });
	await lab.run(pass.begin());
	lab.changed();
	resolve();
	await lab.pass(60_000);
	const record = await readDeploymentRecord(restored.backend);
	expect(record?.establishedBy).toEqual([alpha.info.uid]);
	// The derivation has not ended when a user deletes the owner.
	const left = (await restored.read(owner)) as Resource;
	await lab.run(restored.withDescriptor(descriptor).commit(deletion(lab.runtime, left)));
	await lab.run(pass.complete(never));
	restored.crash();
	Object.assign(restored.spec, { types });
	await lab.run(restored.start());
	await lab.pass(300_000);
	expect(await alpha.read(owned)).toBeUndefined();
});
