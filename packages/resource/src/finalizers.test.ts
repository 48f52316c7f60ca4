import { create } from "@bufbuild/protobuf";
import { ResourceSchema } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import {
	addFinalizer,
	deletionTimestampKey,
	finalizersKey,
	finalizersOf,
	hasFinalizer,
	isMarkedForDeletion,
	removeFinalizer,
} from "./finalizers.ts";

const withMetadata = (metadata: Record<string, string>) => create(ResourceSchema, { metadata });

describe("finalizers", () => {
	it("are added once, in order, and removed one by one", () => {
		const resource = withMetadata({});
		addFinalizer(resource, "a");
		addFinalizer(resource, "b");
		addFinalizer(resource, "a");
		expect(finalizersOf(resource)).toEqual(["a", "b"]);
		removeFinalizer(resource, "a");
		expect(hasFinalizer(resource, "a")).toBe(false);
		expect(hasFinalizer(resource, "b")).toBe(true);
	});

	it("leave an empty entry, which means that there are none", () => {
		const resource = withMetadata({ [finalizersKey]: "a" });
		removeFinalizer(resource, "a");
		expect(resource.metadata).toEqual({ [finalizersKey]: "" });
		expect(finalizersOf(resource)).toEqual([]);
	});

	it("are unchanged if the one to remove is missing", () => {
		const resource = withMetadata({});
		removeFinalizer(resource, "a");
		expect(resource.metadata).toEqual({});
	});
});

describe("isMarkedForDeletion", () => {
	it("reads only the resource's own entry", () => {
		expect(isMarkedForDeletion(withMetadata({ [deletionTimestampKey]: "" }))).toBe(true);
		expect(isMarkedForDeletion({ metadata: Object.create({ [deletionTimestampKey]: "x" }) })).toBe(
			false,
		);
	});
});
