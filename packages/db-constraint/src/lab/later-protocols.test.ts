import { create } from "@bufbuild/protobuf";
import { referenceTo } from "@plinth/resource";
import { expect, it } from "vitest";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { descriptorRecord } from "../schema/descriptor-record.ts";
import { protocolRevision } from "../schema/protocol-revision.ts";
import { putRecord, readRecord } from "../shadow/shadow-records.ts";
import { Lab, type LabDeployment, make } from "./lab.fixture.ts";

/** Activates a schema as a server with that revision of the protocol does. */
async function activate(lab: Lab, { backend }: LabDeployment, revision: number) {
	const stored = await readRecord(backend, descriptorRecord);
	const record = {
		case: "descriptor",
		value: { fingerprint: `of revision ${revision}`, revision },
	} as const;
	await lab.run(
		backend.commit([putRecord(lab.runtime, descriptorRecord, stored?.resource, record)]),
	);
}

it("a server establishes no references once a later protocol is active in its deployment", async () => {
	const lab = new Lab(1);
	const alpha = await lab.add({ name: "alpha", service: "alpha", region: "r1", types: [Thing] });
	const beta = await lab.add({
		name: "beta",
		service: "beta",
		region: "r1",
		types: [Widget],
		foreignTypes: [Thing],
	});
	await lab.run(alpha.write(make(Thing, "a", create(ThingSchema))));
	const needs = referenceTo({ type: Thing.type, name: "a" });
	const widget = (name: string) => make(Widget, name, create(WidgetSchema, { needs }));
	await activate(lab, alpha, protocolRevision);
	await lab.run(beta.write(widget("v")));
	await activate(lab, alpha, protocolRevision + 1);
	await expect(lab.run(beta.write(widget("w")))).rejects.toThrow(
		`revision ${protocolRevision + 1} is active: replace it`,
	);
	expect(await beta.read(beta.id(Widget, "w"))).toBeUndefined();
});
