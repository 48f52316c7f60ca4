import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Label, FieldDescriptorProto_Type } from "@bufbuild/protobuf/wkt";
import { idOf, resourceOf, TypeRegistry } from "@plinth/resource";
import { expect, it } from "vitest";
import { field, typeFromBytes, typeOptions } from "../type-from-bytes.fixture.ts";
import { CopyCheck } from "./copy-check.ts";

it("a rule that can't be applied to a copy is a problem of that copy", () => {
	const rule = { id: "first", message: "no bad tags", expression: "this.tags[0] != 'bad'" };
	const tags = {
		...field("tags", 1, FieldDescriptorProto_Type.STRING),
		label: FieldDescriptorProto_Label.REPEATED,
	};
	const type = typeFromBytes(
		[{ name: "Gig", options: typeOptions({ cel: [rule] }), field: [tags] }],
		{},
	);
	const check = new CopyCheck(new TypeRegistry([type]));
	const problemOf = (data: JsonValue) =>
		check.problem(resourceOf(type, { id: idOf(type, "gig"), data: fromJson(type.schema, data) }));
	expect(problemOf({ tags: ["good"] })).toBeUndefined();
	expect(problemOf({ tags: ["bad"] })).toBe("data invalid: no bad tags");
	expect(problemOf({})).toMatch(/^the validation rules of .*Gig can't be applied$/);
});
