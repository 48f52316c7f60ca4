import { create } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { referenceTo } from "@plinth/resource";
import type { StorageBackend } from "@plinth/storage";
import { Thing, ThingSchema, Widget, WidgetSchema } from "../../testdata/types.ts";
import type { ConstraintLimits } from "../node/limits.ts";
import { Lab, make, type TransportDecorator } from "./lab.fixture.ts";

/** The fields of a thing. */
export type ThingInit = Parameters<typeof create<typeof ThingSchema>>[1];
type WidgetInit = Parameters<typeof create<typeof WidgetSchema>>[1];

/** A thing. */
export function thing(name: string, init: ThingInit = {}) {
	return make(Thing, name, create(ThingSchema, init));
}

/** A widget. */
export function widget(name: string, init: WidgetInit = {}) {
	return make(Widget, name, create(WidgetSchema, init));
}

/** A reference to a thing. */
export function to(name: string, region = "") {
	return { ...referenceTo({ type: Thing.type, name }), region };
}

/** Decorates a transport with a hook that runs before each call. */
export function hooked(before: (method: string) => Promise<void>): TransportDecorator {
	return (transport): Transport => ({
		stream: (...args) => transport.stream(...args),
		async unary(method, ...rest) {
			await before(method.name);
			return transport.unary(method, ...rest);
		},
	});
}

/** One deployment of things. */
export async function oneDeployment(
	limits: Partial<ConstraintLimits> = {},
	decorate = (backend: StorageBackend) => backend,
) {
	const lab = new Lab(1, limits);
	const spec = { name: "alpha", service: "alpha", region: "", types: [Thing] };
	const alpha = await lab.add(spec, decorate);
	return { lab, alpha, id: (name: string) => alpha.id(Thing, name) };
}

/** A deployment of things and one of widgets. */
export async function twoDeployments(
	decorateTransport?: TransportDecorator,
	decorate?: (lab: Lab) => StorageBackend,
) {
	const lab = new Lab(1, {}, decorateTransport);
	const backend = (original: StorageBackend) => decorate?.(lab) ?? original;
	const alpha = await lab.add(
		{ name: "alpha-1", service: "alpha", region: "r1", types: [Thing] },
		backend,
	);
	const beta = await lab.add(
		{ name: "beta-1", service: "beta", region: "r1", types: [Widget], foreignTypes: [Thing] },
		backend,
	);
	return { lab, alpha, beta };
}

/** Deployments of things in two regions, and one of widgets that may reference them. */
export async function thingsInTwoRegions() {
	const lab = new Lab(1);
	const things = { service: "alpha", types: [Thing] };
	const alpha = await lab.add({ ...things, name: "alpha", region: "r1" });
	const far = await lab.add({ ...things, name: "far", region: "r2" });
	const beta = await lab.add({
		...{ name: "beta", service: "beta", region: "r1" },
		...{ types: [Widget], foreignTypes: [Thing] },
	});
	return { lab, things, alpha, far, beta };
}
