import { forEachSeed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { compareHpack } from "./nghttp2-hpack.fixture.ts";

describe("much HPACK", () => {
	it("is decoded as by nghttp2, and refused with it", () => forEachSeed(1_000, compareHpack));
});
