import { forEachSeed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { checkBothSides } from "./both-sides.fixture.ts";
import { fuzzClient } from "./client-fuzz.fixture.ts";
import { checkFlowControl } from "./flow-model.fixture.ts";
import { fuzz } from "./fuzz.fixture.ts";
import { checkHpack } from "./hpack-model.fixture.ts";

describe("random sessions", () => {
	it("keep the rules of flow control, and make progress", () => forEachSeed(60, checkFlowControl));
	it("of changed bytes end in order", () => forEachSeed(300, fuzz));
	it("of a client with a server complete every call", () => forEachSeed(60, checkBothSides));
	it("of a server's changed bytes end in order", () => forEachSeed(200, fuzzClient));
	it("of header blocks keep both tables the same", () => forEachSeed(100, checkHpack));
});
