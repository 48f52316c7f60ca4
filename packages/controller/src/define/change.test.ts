import { clone, create } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema, StatusSchema } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { Artist, demo } from "../demo-types.fixture.ts";
import {
	allOf,
	anyChange,
	anyOf,
	type Change,
	contentChanged,
	metadataChanged,
	statusChanged,
} from "./change.ts";

const previous = demo(Artist, "miles", "", { metadata: { born: "1926" } });
previous.generation = "1";
previous.version = "1";

function update(change: (resource: Resource) => void): Change {
	const current = clone(ResourceSchema, previous);
	current.version = "2";
	change(current);
	return { kind: "updated", previous, current };
}

const status = update((resource) => {
	resource.status.artist = create(StatusSchema, { observedGeneration: "1" });
});
const metadata = update((resource) => {
	resource.metadata.died = "1991";
	resource.generation = "2";
});
const content = update((resource) => {
	resource.generation = "2";
});

describe("predicates on changes", () => {
	it("hold for what is created or deleted", () => {
		for (const holds of [anyChange, contentChanged, metadataChanged, statusChanged]) {
			expect(holds({ kind: "created", current: previous })).toBe(true);
			expect(holds({ kind: "deleted", previous })).toBe(true);
		}
	});

	it.each([
		["status", status, { content: false, metadata: false, status: true }],
		["metadata", metadata, { content: true, metadata: true, status: false }],
		["content", content, { content: true, metadata: false, status: false }],
	])("tell a change of %s from others", (_, change, expected) => {
		expect(anyChange(change)).toBe(true);
		expect(contentChanged(change)).toBe(expected.content);
		expect(metadataChanged(change)).toBe(expected.metadata);
		expect(statusChanged(change)).toBe(expected.status);
	});

	it("treat another incarnation as other content", () => {
		const again = update((resource) => {
			if (resource.id !== undefined) {
				resource.id.uid = "other";
			}
		});
		expect(contentChanged(again)).toBe(true);
	});

	it("combine", () => {
		expect(anyOf(metadataChanged, statusChanged)(status)).toBe(true);
		expect(anyOf(metadataChanged, contentChanged)(status)).toBe(false);
		expect(allOf(contentChanged, metadataChanged)(metadata)).toBe(true);
		expect(allOf(contentChanged, metadataChanged)(content)).toBe(false);
	});
});
