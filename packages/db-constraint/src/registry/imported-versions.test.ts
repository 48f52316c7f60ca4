import { clone, create, createFileRegistry, setExtension } from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileOptionsSchema } from "@bufbuild/protobuf/wkt";
import {
	ServiceVersionSchema,
	service,
} from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { defineType, type ResourceType } from "@plinth/resource";
import { expect, it } from "vitest";
import { Thing, WidgetSchema } from "../../testdata/types.ts";
import { ThingV2, WidgetV2 } from "../lab/two-versions.fixture.ts";
import { RegistryLab, whenKnown } from "./registry-lab.fixture.ts";

/** Widgets in v1 before they had references: their service imports nothing in this version. */
function widgetWithoutReferences(): ResourceType {
	const { proto, dependencies } = WidgetSchema.file;
	const file = clone(FileDescriptorProtoSchema, proto);
	const [message] = file.messageType;
	Object.assign(message ?? {}, { field: message?.field.slice(0, 1) });
	file.options = create(FileOptionsSchema);
	setExtension(file.options, service, create(ServiceVersionSchema, { service: "beta" }));
	const registry = createFileRegistry(file, (name) =>
		dependencies.find((each) => each.proto.name === name),
	);
	const schema = registry.getMessage(WidgetSchema.typeName);
	if (schema === undefined) {
		throw new Error("the copy has no Widget");
	}
	return defineType(schema);
}

it("a deployment imports what any version that it serves does, whichever of them it publishes", async () => {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1");
	const alpha = await lab.start("alpha", "r1", { types: [Thing, ThingV2] });
	const types = [widgetWithoutReferences(), WidgetV2];
	const { registry } = await lab.start("beta", "r1", { types });
	await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1")?.version === "v2");
	await lab.change(meta, "beta-r1", { wantedVersion: "v1" });
	await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1")?.version === "v1");
	expect(alpha.registry.imports(registry.self.uid, "alpha")).toBe(true);
});
