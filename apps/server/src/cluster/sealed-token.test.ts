import { Code, createHandlerContext, type HandlerContext } from "@connectrpc/connect";
import { ControllerService, ResourceService } from "@plinth/proto";
import { describe, expect, it } from "vitest";
import { openSealedToken, sealedTokenHeader, sealToken } from "./sealed-token.ts";

function callWith(sealed: string): HandlerContext {
	return createHandlerContext({
		service: ControllerService,
		method: ControllerService.method.listControllers,
		...{ protocolName: "connect", requestMethod: "POST", url: "http://localhost" },
		requestHeader: { [sealedTokenHeader]: sealed, authorization: "Bearer another" },
	});
}

describe("a sealed token", () => {
	it("is opened by the server for which it was sealed, in place of any other", () => {
		const sealed = sealToken("of-the-caller", "secret");
		expect(sealed).not.toBe(sealToken("of-the-caller", "secret"));
		expect(Buffer.from(sealed, "base64url").toString("latin1")).not.toContain("caller");
		const call = callWith(sealed);
		openSealedToken(call, "secret");
		expect(call.requestHeader.get("authorization")).toBe("Bearer of-the-caller");
	});

	it("is refused if it was sealed for another server, changed, or malformed", () => {
		const sealed = Buffer.from(sealToken("of-the-caller", "secret"), "base64url");
		const changed = [...sealed.keys()].map((at) =>
			Buffer.from(sealed.with(at, (sealed[at] ?? 0) ^ 1)).toString("base64url"),
		);
		const short = [...sealed.keys()].map((end) => sealed.subarray(0, end).toString("base64url"));
		const wrong = [sealToken("of-the-caller", "other"), "", "?", "A".repeat(100_000)];
		for (const each of [...changed, ...short, ...wrong]) {
			const call = callWith(each);
			expect(() => openSealedToken(call, "secret")).toThrow(
				expect.objectContaining({ code: Code.Unauthenticated }),
			);
			expect(call.requestHeader.get("authorization")).toBe("Bearer another");
		}
	});

	it("counts in calls of ControllerService alone", () => {
		const requestHeader = new Headers({ [sealedTokenHeader]: sealToken("of-ann", "secret") });
		openSealedToken({ service: ResourceService, requestHeader }, "secret");
		expect(requestHeader.get("authorization")).toBeNull();
	});
});
