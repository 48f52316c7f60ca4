import { describe, it } from "vitest";
import { checkLiveBackups } from "./live-backup.fixture.ts";

describe("a backup that is taken between commits", () => {
	// Few runs: the deep test runs many.
	it("has the state as of the newest commit, whatever each commit writes and however far the copy is", async () => {
		await checkLiveBackups(20, 1);
	});
});
