import { forEachSeed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { checkFlowControl } from "./flow-model.fixture.ts";
import { fuzz } from "./fuzz.fixture.ts";
import { checkHpack } from "./hpack-model.fixture.ts";

describe("many random sessions", () => {
	it("keep the rules of flow control, and make progress", () => forEachSeed(250, checkFlowControl));
	it("of changed bytes end in order", () => forEachSeed(1_200, fuzz));
	it("of header blocks keep both tables the same", () => forEachSeed(1_200, checkHpack));
});
