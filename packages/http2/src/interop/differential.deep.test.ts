import { forEachSeed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { compareServers } from "./differential.fixture.ts";

describe("a server of this package, for many clients,", () => {
	it("receives and sends the same as one of node:http2", () => forEachSeed(120, compareServers));
});
