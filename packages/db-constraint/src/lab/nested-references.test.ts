import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { expect, it } from "vitest";
import { otherThing } from "../../testdata/other-thing.ts";
import { Thing } from "../../testdata/types.ts";
import { ServiceDescriptor } from "../schema/service-descriptor.ts";
import { oneDeployment, thing, to } from "./things.fixture.ts";

/** Things before their parts have got parts: only the new schema finds the references of these. */
const before = otherThing((file) => {
	const part = file.messageType[0]?.nestedType.find(({ name }) => name === "Part");
	Object.assign(part ?? {}, { field: part?.field.filter(({ name }) => name !== "parts") });
});
const nested = { parts: [{ parts: [{ madeOf: to("a") }] }] };

it("references in a field that leads to a known type are derived when a schema adds it", async () => {
	const { lab, alpha, id } = await oneDeployment();
	const start = async (type: typeof before) => {
		alpha.crash();
		Object.assign(alpha.spec, { types: [type] });
		await lab.run(alpha.start());
	};
	await start(before);
	await lab.run(alpha.write(thing("a")));
	// A newer client: the server keeps the field, which it does not know.
	await lab.run(alpha.write(thing("user", nested)));
	expect((await alpha.shadow(id("user")))?.outgoing ?? []).toEqual([]);
	await start(Thing);
	await lab.pass(600_000);
	const target = { name: "a" };
	expect((await alpha.shadow(id("user")))?.outgoing).toMatchObject([{ field: "6.2.1", target }]);
});

it("a server without the field writes nothing beside one that has it", async () => {
	const { lab, alpha, id } = await oneDeployment();
	await lab.run(alpha.write(thing("a")));
	await lab.run(alpha.write(thing("user", nested)));
	const stored = await alpha.read(id("user"));
	const older = new ServiceDescriptor({ types: [before], service: "alpha" });
	const resource = structuredClone({ ...stored, metadata: { seen: "yes" } }) as typeof stored;
	const put = resource && { op: "put" as const, resource, expectedVersion: resource.version };
	const written = lab.run(alpha.withDescriptor(older).commit(put === undefined ? [] : [put]));
	await expect(written).rejects.toThrow("another schema of references is active");
	expect((await alpha.shadow(id("user")))?.outgoing).toMatchObject([
		{ rule: OnDelete.UNSET, target: { name: "a" } },
	]);
});
