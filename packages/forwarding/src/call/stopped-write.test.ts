import { Code, ConnectError } from "@connectrpc/connect";
import { expect, it } from "vitest";
import { connectingServer, serverWith, startWrite, UpstreamStream } from "./write-call.fixture.ts";

it("an agent that stops before a write is sent again says that it may have been executed", () => {
	const stream = new UpstreamStream();
	const { forwarded, response } = startWrite({
		contentType: "application/proto",
		// A Write with the version 7.
		request: Uint8Array.of(0x0a, 3, 0x1a, 1, 0x37),
		servers: [serverWith(stream), connectingServer()],
	});
	stream.lose();
	expect(response.retries).toBe(1);
	forwarded.stop(new ConnectError("the agent is stopping", Code.Unavailable));
	expect(JSON.parse(response.body)).toMatchObject({
		code: "unavailable",
		details: [{ type: "google.rpc.ErrorInfo" }],
	});
});
