import { describe, expect, it } from "vitest";
import { demoTypes } from "../demo.fixture.ts";
import { gigType } from "../gig.fixture.ts";
import { liveType } from "../live-type.fixture.ts";
import { ruleProblems } from "./rule-problems.ts";

const cel = (...expressions: readonly string[]) => ({
	cel: expressions.map((expression, at) => ({ id: `rule-${at}`, expression })),
});

const field = (name: string) => `type live.v1.Thing: field acme.live.v1.Thing.${name}: `;

describe("rules that can't work", () => {
	it.each([
		["this +", "failed to compile rule-0: syntax error"],
		["this.nope == 1", "field not found: nope"],
		["nope == 1", "unresolved attribute"],
		["nofunc(this)", "unbound function: nofunc"],
		["this > 3", "found no matching overload for '_>_' applied to '(string, int)'"],
		["size(this)", "outputs bigint, wanted either bool or string"],
		["this.matches('[')", "error parsing regexp"],
		["this == '' || this.nope", "field not found: nope"],
	])("are told by field and reason: %s", (expression, reason) => {
		const problems = ruleProblems([liveType({ text: cel(expression) })]);
		expect(problems).toHaveLength(1);
		expect(problems[0]).toContain(field("text"));
		expect(problems[0]).toContain(reason);
		expect(problems[0]).toContain(`in the rule "${expression}"`);
	});

	it("are told of all messages, fields, elements and entries at once", () => {
		const type = liveType({
			message: cel("this.count > this.nope", "1"),
			count: cel("this > 0", "this.x", "this"),
			words: { type: { case: "repeated", value: { items: cel("this.nope") } } },
			labels: { type: { case: "map", value: { values: cel("this > 3") } } },
			note: { type: { case: "string", value: { pattern: "[" } } },
		});
		const problems = ruleProblems([type]);
		const message = "type live.v1.Thing: message acme.live.v1.Thing";
		expect(problems).toEqual([
			expect.stringContaining(`${message}: field not found: nope`),
			expect.stringContaining(`${message}: expression rule-1 outputs bigint`),
			expect.stringContaining(`${field("count")}field not found: x`),
			expect.stringContaining(`${field("count")}expression rule-2 outputs bigint`),
			expect.stringContaining(`${field("words")}`),
			expect.stringContaining(`${field("labels")}found no matching overload`),
			expect.stringContaining("field acme.live.v1.Part.note: error parsing regexp"),
		]);
	});
});

describe("rules that name what is not there", () => {
	it("are told", () => {
		const type = liveType({ message: { oneof: [{ fields: ["text", "missing", "text"] }, {}] } });
		const rule = "type live.v1.Thing: message acme.live.v1.Thing: (buf.validate.message).oneof";
		expect(ruleProblems([type])).toEqual([
			`${rule} names a field twice`,
			`${rule} names "missing", which is not a field of the message`,
			`${rule} names no field`,
		]);
	});
});

describe("rules for another kind of field", () => {
	it("are told", () => {
		const type = liveType({ text: { type: { case: "int32", value: { const: 1 } } } });
		expect(ruleProblems([type])).toEqual([`${field("text")}expected rule "string", got "int32"`]);
	});
});

describe("rules that work", () => {
	it.each([
		"int(this) > 3",
		"timestamp(this) > now",
		"duration(this) > duration('1s')",
		"this[0] == 'a'",
		"this.isEmail()",
		"this == 'x' ? '' : 'must be x'",
	])("are no problem, whatever values they need: %s", (expression) => {
		expect(ruleProblems([liveType({ text: cel(expression) })])).toEqual([]);
	});

	it("are no problem on messages that hold each other", () => {
		const type = liveType({
			message: cel(
				"this.part.note == '' || this.part.of.count > 0",
				"this.parts.all(p, p.note != '')",
			),
			note: { required: true },
			labels: { type: { case: "map", value: { keys: cel("this.size() < 9"), maxPairs: 3n } } },
		});
		expect(ruleProblems([type])).toEqual([]);
	});

	it("are no problem in the types of the tests", () => {
		expect(ruleProblems([...demoTypes, gigType()])).toEqual([]);
	});
});
