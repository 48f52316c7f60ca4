import { itWith } from "@plinth/test-support";
import { describe } from "vitest";
import { follow, longWalks } from "./walks.ts";

describe.concurrent("the code blocks of the pages", () => {
	for (const walk of longWalks) {
		itWith(...walk.tools)(`of ${walk.last} are true`, () => follow(walk));
	}
});
