import { create } from "@bufbuild/protobuf";
import { conditionsOf } from "@plinth/documents";
import { Condition_State, ResourceSchema } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { statusOf } from "./conditions.ts";

const { TRUE, FALSE, UNKNOWN } = Condition_State;

function resourceWith(
	conditions: readonly (readonly [type: string, state: Condition_State, reason?: string])[],
	observedGeneration = "g2",
	metadata: Record<string, string> = {},
) {
	return create(ResourceSchema, {
		generation: "g2",
		metadata,
		status: {
			controller: {
				observedGeneration,
				conditions: conditions.map(([type, state, reason = ""]) => ({ type, state, reason })),
			},
		},
	});
}

describe("statusOf", () => {
	it.each([
		[[], "g2", "", "plain"],
		[[["Ready", TRUE]], "g2", "Ready", "good"],
		[[["Ready", TRUE]], "g1", "Ready?", "unsure"],
		[[["Ready", FALSE, "Refused"]], "g2", "Ready=False (Refused)", "bad"],
		[[["Ready", FALSE]], "g1", "Ready=False?", "unsure"],
		[
			[
				["Ready", TRUE],
				["Ok", UNKNOWN],
			],
			"g2",
			"Ready, Ok=Unknown",
			"unsure",
		],
		[
			[
				["Ready", TRUE],
				["Ok", FALSE],
			],
			"g2",
			"Ready, Ok=False",
			"bad",
		],
	] as const)("of %j, observed at %s, is %j", (conditions, generation, text, tone) => {
		expect(statusOf(resourceWith(conditions, generation))).toEqual({ text, tone });
	});

	it("says that a resource is being deleted", () => {
		const marked = { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: "a.example/b" };
		expect(statusOf(resourceWith([["Ready", TRUE]], "g2", marked))).toEqual({
			text: "Deleting, Ready",
			tone: "unsure",
		});
	});
});

it("orders conditions by reporter", () => {
	const resource = create(ResourceSchema, {
		status: { b: { conditions: [{ type: "B" }] }, a: { conditions: [{ type: "A" }] } },
	});
	expect(conditionsOf(resource).map(({ reporter }) => reporter)).toEqual(["a", "b"]);
});
