import { forEachSeed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { checkBothSides } from "./both-sides.fixture.ts";
import { fuzzClient } from "./client-fuzz.fixture.ts";
import { checkFlowControl } from "./flow-model.fixture.ts";
import { fuzz } from "./fuzz.fixture.ts";
import { checkHpack } from "./hpack-model.fixture.ts";

describe("many random sessions", () => {
	it("keep the rules of flow control, and make progress", () => forEachSeed(250, checkFlowControl));
	it("of changed bytes end in order", () => forEachSeed(1_200, fuzz));
	it("of a client with a server complete every call", () => forEachSeed(400, checkBothSides));
	it("of a server's changed bytes end in order", () => forEachSeed(1_200, fuzzClient));
	it("of header blocks keep both tables the same", () => forEachSeed(1_200, checkHpack));
});
