import { create } from "@bufbuild/protobuf";
import { OriginSchema, type Resource } from "@plinth/proto";
import { deletionTimestampKey, idOf, newUlid, resourceOf } from "@plinth/resource";
import { systemRuntime } from "@plinth/runtime";
import { describe, expect, it } from "vitest";
import { Good } from "../simulation/goods.fixture.ts";
import { TypeExport } from "./type-export.ts";

const [west, east, north] = Array.from({ length: 3 }, () => newUlid(systemRuntime));

function good(metadata: Readonly<Record<string, string>> = {}): Resource {
	return { ...resourceOf(Good, { id: idOf(Good, "lamp") }), metadata: { ...metadata } };
}

/** A copy of a resource of `west`. */
function copy(metadata: Readonly<Record<string, string>> = {}): Resource {
	return { ...good(metadata), origin: create(OriginSchema, { path: [west ?? ""] }) };
}

describe("what a cluster offers to a peer", () => {
	const exported = new TypeExport({
		type: Good,
		definition: { partition: "default", namespaces: [] },
		exported: { namePrefixes: [], maskedFields: [] },
		own: { uid: east ?? "", incarnation: newUlid(systemRuntime) },
		receiver: { kind: "peer", cluster: north ?? "" },
	});
	const mark = { [deletionTimestampKey]: new Date(0).toISOString() };

	it("has resources that are being deleted, and copies, but no copies that are being removed", () => {
		expect(exported.offers(good())).toBe(true);
		expect(exported.offers(good(mark))).toBe(true);
		expect(exported.offers(copy())).toBe(true);
		expect(exported.offers(copy(mark))).toBe(false);
	});

	it("has nothing that has passed the peer", () => {
		const passed = create(OriginSchema, { path: [north ?? "", west ?? ""] });
		expect(exported.offers({ ...copy(), origin: passed })).toBe(false);
	});
});
