import { create } from "@bufbuild/protobuf";
import {
	DeployedSchema,
	Lifecycle,
	ShadowSchema,
	SourceSchema,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import { resourceOf } from "@plinth/resource";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import type { ShadowListener } from "./shadow-index.ts";
import { ResourceShadow, recordId } from "./shadow-records.ts";
import { checkingState, tentativeState, WaitingAges } from "./waiting-ages.ts";

/** A shadow with a tentative source of that establishment; none if absent. */
function shadow(version: string, lifecycle: Lifecycle, establishment?: bigint) {
	const deployment = create(DeployedSchema, { uid: "beta" });
	const sources =
		establishment === undefined
			? []
			: [create(SourceSchema, { deployment, establishment, tentative: true })];
	return {
		name: "s-1",
		version,
		resource: resourceOf(ResourceShadow, { id: recordId("s-1") }),
		shadow: create(ShadowSchema, { lifecycle, sources }),
	};
}

function follow() {
	const clock = new FakeClock();
	const listeners: ShadowListener[] = [];
	const index = {
		onChange: (listener: ShadowListener) => {
			listeners.push(listener);
			return () => {};
		},
	};
	const ages = new WaitingAges(index, clock);
	const change = (stored: ReturnType<typeof shadow>, kind: "stored" | "removed" = "stored") => {
		for (const listener of listeners) {
			listener(stored, kind, undefined);
		}
	};
	const source = (establishment: bigint) => {
		const deployment = create(DeployedSchema, { uid: "beta" });
		return tentativeState(create(SourceSchema, { deployment, establishment }));
	};
	return { clock, ages, change, source };
}

describe("the ages of waiting states", () => {
	it("count from when the index contains a state, whether somebody asks or not", async () => {
		const { clock, ages, change, source } = follow();
		change(shadow("1", Lifecycle.ACTIVE, 1n));
		await clock.advanceAsync(20_000);
		const checking = shadow("2", Lifecycle.CHECKING, 1n);
		change(checking);
		await clock.advanceAsync(10_000);
		expect(ages.ageMs("s-1", source(1n))).toBe(30_000);
		expect(ages.ageMs("s-1", checkingState(checking))).toBe(10_000);
	});

	it("begin at 0 with another establishment, and with a shadow that was removed", async () => {
		const { clock, ages, change, source } = follow();
		change(shadow("1", Lifecycle.ACTIVE, 1n));
		await clock.advanceAsync(20_000);
		change(shadow("2", Lifecycle.ACTIVE, 2n));
		expect(ages.ageMs("s-1", source(1n))).toBe(0);
		await clock.advanceAsync(5_000);
		expect(ages.ageMs("s-1", source(2n))).toBe(5_000);
		change(shadow("2", Lifecycle.ACTIVE, 2n), "removed");
		change(shadow("3", Lifecycle.ACTIVE, 2n));
		expect(ages.ageMs("s-1", source(2n))).toBe(0);
	});
});
