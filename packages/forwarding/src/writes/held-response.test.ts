import { expect, it } from "vitest";
import { HeldResponse } from "./held-response.ts";

function respondedWith(status: number, body: object): HeldResponse {
	const head = { ":status": `${status}`, "content-type": "application/json" };
	const held = new HeldResponse(head);
	held.add(Buffer.from(JSON.stringify(body)));
	return held;
}

it.each([
	["permission_denied", 403],
	["unauthenticated", 401],
	["resource_exhausted", 429],
	["aborted", 409],
	["internal", 500],
])("a repeated write that fails with %s may have been executed before", (code, status) => {
	expect(respondedWith(status, { code, message: "no" }).repetition({})?.rawMessage).toBe("no");
});

it("one that is malformed, or has succeeded, has its own result", () => {
	const malformed = respondedWith(400, { code: "invalid_argument", message: "no" });
	expect(malformed.repetition({})).toBeUndefined();
	expect(respondedWith(200, {}).repetition({})).toBeUndefined();
});
