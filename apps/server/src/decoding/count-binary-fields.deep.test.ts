import { describe, it } from "vitest";
import { assertAgrees, assertNotLess, schemas } from "./counted-messages.fixture.ts";

describe("counting the fields of binary messages", () => {
	it.each(schemas.map((schema) => [schema.typeName, schema] as const))(
		"agrees with the decoded message, and never counts less than is decoded from mangled bytes: %s",
		(_name, schema) => {
			assertAgrees(schema, 40);
			assertNotLess(schema, 400);
		},
	);
});
