import { Code, ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { callFailure } from "./call-failure.ts";

it.each([
	[4_194_304, "the resource is larger than the server accepts (4 MiB)"],
	[1_000, "the resource is larger than the server accepts (1000 bytes)"],
])("says what is too large for a limit of %i bytes", (limit, message) => {
	const error = new ConnectError(
		`message size 5000123 is larger than configured readMaxBytes ${limit}`,
		Code.ResourceExhausted,
	);
	expect(callFailure(error, "http://a", "resource").message).toBe(message);
});
