import { encodeEnvelope } from "@connectrpc/connect/protocol";
import { describe, expect, it } from "vitest";
import { connectingServer, serverWith, startWrite, UpstreamStream } from "./write-call.fixture.ts";

const message = Buffer.from("a response");

/** Forwards a write without a condition, whose response begins with these bytes. */
function begun(contentType: string, bytes: Uint8Array) {
	const stream = new UpstreamStream();
	const { response } = startWrite({
		contentType,
		request: contentType === "application/proto" ? message : encodeEnvelope(0, message),
		servers: [serverWith(stream), connectingServer()],
	});
	stream.call.onHead(200, ["content-type", contentType]);
	stream.call.onData(Buffer.from(bytes));
	return { stream, response };
}

describe.each(["application/grpc", "application/grpc-web", "application/proto"])(
	"the response of %s to a write",
	(contentType) => {
		const whole = contentType === "application/proto" ? message : encodeEnvelope(0, message);

		it("is an error that says so if the server is lost within it", () => {
			const { stream, response } = begun(contentType, whole.subarray(0, 7));
			stream.lose();
			const { status, fields, body, trailers, resets } = response;
			expect({ status, resets }).toEqual({
				status: contentType === "application/proto" ? 503 : 200,
				resets: 0,
			});
			expect(`${JSON.stringify({ ...fields, ...trailers })} ${body}`).toMatch(
				/which(%20| )may(%20| )have(%20| )been(%20| )executed/,
			);
			expect(body).not.toContain("a r");
		});

		it("is passed on whole", () => {
			const { stream, response } = begun(contentType, whole.subarray(0, 7));
			expect(response.status).toBe(0);
			stream.call.onData(Buffer.from(whole.subarray(7)));
			stream.call.onEnd(["grpc-status", "0"]);
			expect(response).toMatchObject({ status: 200, body: Buffer.from(whole).toString("latin1") });
			expect(stream.resets).toBe(0);
		});
	},
);

it("a large response to a write is passed on as it comes, and reset if the server is lost within it", () => {
	const large = encodeEnvelope(0, new Uint8Array(100_000));
	const { stream, response } = begun("application/grpc", large.subarray(0, 90_000));
	expect(response.body.length).toBe(90_000);
	stream.lose();
	expect(response.resets).toBe(1);
	expect(response.trailers).toEqual({});
});
