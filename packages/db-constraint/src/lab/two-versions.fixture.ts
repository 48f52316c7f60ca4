import { create } from "@bufbuild/protobuf";
import type { OwnerReference } from "@plinth/proto";
import { defineType, type ResourceType, referenceTo } from "@plinth/resource";
import { ThingSchema as ThingV2Schema } from "../../testdata/gen/acme/alpha/v2/thing_pb.ts";
import { WidgetSchema as WidgetV2Schema } from "../../testdata/gen/acme/beta/v2/widget_pb.ts";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import { type Lab, type LabDeployment, make } from "./lab.fixture.ts";

/** Things in v2. */
export const ThingV2 = defineType(ThingV2Schema);

/** Widgets in v2, which reference things in v2. */
export const WidgetV2 = defineType(WidgetV2Schema);

/** A deployment of things in some versions. */
export function alphaIn(lab: Lab, region: string, types: readonly ResourceType[]) {
	return lab.add({ name: `alpha-${region}`, service: "alpha", region, types });
}

/** A deployment of widgets in some versions. */
export function betaIn(lab: Lab, region: string, types: readonly ResourceType[]) {
	const foreignTypes = [Thing];
	return lab.add({ name: `beta-${region}`, service: "beta", region, types, foreignTypes });
}

/** A thing in the version that the deployment serves. */
export function thingOf({ spec }: LabDeployment, name: string) {
	return spec.types.includes(Thing)
		? make(Thing, name, create(ThingSchema))
		: make(ThingV2, name, create(ThingV2Schema));
}

/** The references and owners of a widget. */
interface WidgetUses {
	readonly needs?: LabDeployment;
	readonly belongsTo?: LabDeployment;
	readonly likes?: LabDeployment;
	readonly owners?: readonly OwnerReference[];
}

/** A widget in a version, which references the thing `a` of deployments in that version. */
export function widgetIn(version: "v1" | "v2", name: string, uses: WidgetUses) {
	const thing = (deployment: LabDeployment | undefined) =>
		deployment && {
			...referenceTo({ type: { ...Thing.type, groupVersion: version }, name: "a" }),
			region: deployment.info.region,
		};
	const [needs, belongsTo, likes] = [uses.needs, uses.belongsTo, uses.likes].map(thing);
	const init = {
		...(needs && { needs }),
		...(belongsTo && { belongsTo }),
		likes: likes ? [likes] : [],
	};
	const widget =
		version === "v1"
			? make(Widget, name, create(WidgetSchema, init))
			: make(WidgetV2, name, create(WidgetV2Schema, init));
	return { ...widget, ownerReferences: [...(uses.owners ?? [])] };
}
