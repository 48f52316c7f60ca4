import { errorCode } from "@plinth/http2";
import { expect, it } from "vitest";
import { connectingServer, serverWith, startWrite, UpstreamStream } from "./write-call.fixture.ts";

const contentType = "application/proto";
/** A Write with the version 7. */
const conditional = Uint8Array.of(0x0a, 3, 0x1a, 1, 0x37);

it("a repeated write that a server resets may have been executed by the one before, and its error says so", () => {
	const [lost, second] = [new UpstreamStream(), new UpstreamStream()];
	const { response } = startWrite({
		...{ contentType, request: conditional },
		servers: [serverWith(lost), serverWith(second, "b")],
	});
	lost.lose();
	expect(response.retries).toBe(1);
	second.resetByServer(errorCode.enhanceYourCalm);
	expect(response).toMatchObject({ status: 503, resets: 0 });
	expect(JSON.parse(response.body)).toMatchObject({
		code: "unavailable",
		message: expect.stringMatching(/may have been executed.*b has reset the call/),
		details: [{ type: "google.rpc.ErrorInfo" }],
	});
});

it("a write that its only server resets is reset", () => {
	const stream = new UpstreamStream();
	const { response } = startWrite({
		...{ contentType, request: conditional },
		servers: [serverWith(stream), connectingServer()],
	});
	stream.resetByServer(errorCode.enhanceYourCalm);
	expect(response).toMatchObject({ status: 0, body: "", resets: 1, retries: 0 });
});
