import { ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { copyHeaders } from "./copy-headers.ts";

/** The message of the error that the headers have. */
function errorOf(headers: Parameters<typeof copyHeaders>[0]): string {
	try {
		copyHeaders(headers);
	} catch (thrown) {
		return ConnectError.from(thrown).message;
	}
	return "no error";
}

const fine = ["x-fine", "fine"] as const;

it.each([
	["x y", "secret", '[internal] header "x y" has an invalid name'],
	["", "secret", '[internal] header "" has an invalid name'],
	["x\ny", "secret", '[internal] header "x\\ny" has an invalid name'],
	["authorization", "Bearer sec\nret", "[internal] header authorization has an invalid value"],
	["authorization", "Bearer secret\0", "[internal] header authorization has an invalid value"],
	["authorization", "Bearer sécret€", "[internal] header authorization has an invalid value"],
])("names the invalid header %j, and does not show its value", (name, value, expected) => {
	expect(errorOf({ ...Object.fromEntries([fine]), [name]: value })).toBe(expected);
	expect(errorOf([[...fine], [name, value]])).toBe(expected);
});

it("copies headers that are valid", () => {
	const headers = new Headers({ "X-A": "1" });
	const copy = copyHeaders(headers);
	headers.set("x-a", "2");
	expect([...copy]).toEqual([["x-a", "1"]]);
	expect([...copyHeaders([["X-B", "é"]])]).toEqual([["x-b", "é"]]);
});
