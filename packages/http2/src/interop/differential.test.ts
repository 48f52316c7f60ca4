import { forEachSeed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { compareImplementations } from "./differential.fixture.ts";

describe("clients and servers of this package", () => {
	it("receive and send the same as those of node:http2", () =>
		forEachSeed(15, compareImplementations));
});
