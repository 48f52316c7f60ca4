import { create } from "@bufbuild/protobuf";
import { type Resource, ResourceSchema } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { Exhausted } from "./errors.ts";
import { checkGrowth, defaultStorageLimits } from "./limits.ts";

const limits = { ...defaultStorageLimits, memoryBytes: 10_000 };

function resource(size: number): Resource {
	return create(ResourceSchema, { metadata: { text: "x".repeat(size) } });
}

describe("the memory limit", () => {
	it("refuses to grow past 80 % of it", () => {
		const put = { kind: "put", resource: resource(100), replaced: undefined } as const;
		expect(() => checkGrowth(7_900, [put], limits)).toThrow(Exhausted);
		expect(() => checkGrowth(5_000, [put], limits)).not.toThrow();
	});

	it("lets a state that is over it already shrink, or stay as large as it is", () => {
		const small = resource(10);
		const large = resource(500);
		expect(() => checkGrowth(50_000, [{ kind: "delete", stored: small }], limits)).not.toThrow();
		for (const replacing of [small, large]) {
			const put = { kind: "put", resource: replacing, replaced: large } as const;
			expect(() => checkGrowth(50_000, [put], limits)).not.toThrow();
		}
		const growing = { kind: "put", resource: large, replaced: small } as const;
		expect(() => checkGrowth(50_000, [growing], limits)).toThrow(Exhausted);
	});
});
