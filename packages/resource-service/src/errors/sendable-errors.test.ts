import { Code, ConnectError } from "@connectrpc/connect";
import { compressionNegotiate } from "@connectrpc/connect/protocol";
import { describe, expect, it } from "vitest";
import { correctConnectError } from "./sendable-errors.ts";

describe("an error of Connect", () => {
	it("says that only uncompressed messages are accepted, instead of listing no encodings", () => {
		const { error } = compressionNegotiate([], "gzip", null, "grpc-accept-encoding");
		expect(error).toBeInstanceOf(ConnectError);
		if (error) {
			correctConnectError(error);
		}
		expect(error?.code).toBe(Code.Unimplemented);
		expect(error?.rawMessage).toBe(
			'unknown compression "gzip": the server accepts only uncompressed messages',
		);
	});

	it("keeps its message if that is complete", () => {
		const message = 'unknown compression "br": supported encodings are gzip';
		const error = new ConnectError(message, Code.Unimplemented);
		correctConnectError(error);
		expect(error.rawMessage).toBe(message);
	});
});
