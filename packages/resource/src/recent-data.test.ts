import { create, type Message } from "@bufbuild/protobuf";
import { PartitionSchema, type Resource, ResourceSchema } from "@plinth/proto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { RecentData } from "./recent-data.ts";

const maxBytes = 100;

const steps = fc.array(
	fc.record({
		kind: fc.constantFrom("get" as const, "set" as const),
		which: fc.nat(7),
		bytes: fc.integer({ min: 1, max: 130 }),
	}),
	{ maxLength: 80, size: "max" },
);

describe("RecentData", () => {
	it("keeps the most recently used data within its byte limit, like a model", () => {
		fc.assert(
			fc.property(steps, (sequence) => {
				const resources = Array.from({ length: 8 }, () => create(ResourceSchema));
				const recent = new RecentData(maxBytes);
				/** The least recently used first. */
				let model: { resource: Resource; data: Message; bytes: number }[] = [];
				const total = () => model.reduce((sum, { bytes }) => sum + bytes, 0);
				for (const { kind, which, bytes } of sequence) {
					// `which` is below their number.
					const resource = resources[which]!;
					const known = model.find((each) => each.resource === resource);
					model = model.filter((each) => each !== known);
					if (kind === "set") {
						const data = create(PartitionSchema);
						recent.set(resource, data, bytes);
						model.push({ resource, data, bytes });
						while (total() > maxBytes && model.length > 1) {
							model.shift();
						}
					} else {
						expect(recent.get(resource)).toBe(known?.data);
						model.push(...(known === undefined ? [] : [known]));
					}
					expect(recent.bytes).toBe(total());
				}
			}),
			{ numRuns: 400 },
		);
	});
});
