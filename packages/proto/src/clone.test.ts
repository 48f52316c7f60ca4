import { assertClones, clonersUnderTest } from "@plinth/protoc-gen-clone/testing";
import { describe, it } from "vitest";
import * as proto from "./index.ts";

describe("the generated cloners", () => {
	it.each(
		clonersUnderTest(proto, proto).map((cloner) => [cloner.schema.typeName, cloner] as const),
	)("clone random messages of %s", (_typeName, cloner) =>
		assertClones(cloner, { runs: 100, seed: 1 }),
	);
});
