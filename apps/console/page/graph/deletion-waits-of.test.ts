import {
	PlanDeletionResponse_Effect_Kind as Kind,
	type PlanDeletionResponse_Effect,
} from "@plinth/proto/gen/plinth/schema/v1/reference_service_pb.js";
import type { ResourceKey } from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { expect, it } from "vitest";
import { deletionWaitsOf } from "./deletion-waits-of.ts";

function key(name: string): ResourceKey {
	return {
		...{ $typeName: "plinth.schema.v1.ResourceKey", group: "demo", kind: "Film" },
		...{ partition: "p", namespace: "n", name, region: "" },
	};
}

function effect(name: string, parts: Partial<PlanDeletionResponse_Effect>) {
	return {
		...{ resource: key(name), kind: Kind.WAITS, finalizers: [], waitsFor: [] },
		...{ hidden: 0, unknown: [], ...parts },
	};
}

function notes(...effects: Parameters<typeof deletionWaitsOf>[0]) {
	return deletionWaitsOf(effects).map(({ name, note, isMarked }) => [name.name, note, isMarked]);
}

it("says of each resource on the way why it is still there", () => {
	expect(
		notes(
			effect("root", {
				waitsFor: [key("a"), key("b"), key("c")],
				finalizers: ["schema.plinth.dev/references"],
			}),
			effect("a", { finalizers: ["backup.example/copied"] }),
			effect("b", { kind: Kind.BLOCKS }),
			effect("other", { kind: Kind.CLEARED }),
		),
	).toEqual([
		["root", "waits for 3 resources", true],
		["a", "waits for finalizer backup.example/copied", true],
		["b", "blocks the deletion", false],
		["c", "not deleted yet", false],
	]);
});

it("has the resource itself if it only waits for a finalizer, and nothing if it waits for nothing", () => {
	expect(notes(effect("root", { finalizers: ["x", "y"] }))).toEqual([
		["root", "waits for finalizers x, y", true],
	]);
	expect(notes(effect("root", { kind: Kind.DELETED }))).toEqual([]);
});
