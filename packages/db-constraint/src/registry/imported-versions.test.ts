import { create, setExtension } from "@bufbuild/protobuf";
import { FileOptionsSchema } from "@bufbuild/protobuf/wkt";
import {
	ServiceVersionSchema,
	service,
} from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import { expect, it } from "vitest";
import { otherType } from "../../testdata/other-thing.ts";
import { Thing, WidgetSchema } from "../../testdata/types.ts";
import { ThingV2, WidgetV2 } from "../lab/two-versions.fixture.ts";
import { RegistryLab, whenKnown } from "./registry-lab.fixture.ts";

/** Widgets in v1 before they had references: their service imports nothing in this version. */
const widgetWithoutReferences = otherType(WidgetSchema, (file) => {
	const [message] = file.messageType;
	Object.assign(message ?? {}, { field: message?.field.slice(0, 1) });
	file.options = create(FileOptionsSchema);
	setExtension(file.options, service, create(ServiceVersionSchema, { service: "beta" }));
});

it("a deployment imports what any version that it serves does, whichever of them it publishes", async () => {
	const lab = new RegistryLab();
	const meta = await lab.start("meta", "r1");
	const alpha = await lab.start("alpha", "r1", { types: [Thing, ThingV2] });
	const types = [widgetWithoutReferences, WidgetV2];
	const { registry } = await lab.start("beta", "r1", { types });
	await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1")?.version === "v2");
	await lab.change(meta, "beta-r1", { wantedVersion: "v1" });
	await whenKnown(alpha.registry, () => alpha.registry.find("beta", "r1")?.version === "v1");
	expect(alpha.registry.imports(registry.self.uid, "alpha")).toBe(true);
});
