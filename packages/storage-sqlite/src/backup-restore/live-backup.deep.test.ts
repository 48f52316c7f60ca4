import { runs, seed } from "@plinth/test-support";
import { describe, it } from "vitest";
import { checkLiveBackups } from "./live-backup.fixture.ts";

describe("a backup that is taken between commits, in many runs", () => {
	it("has the state as of the newest commit, whatever each commit writes and however far the copy is", async () => {
		await checkLiveBackups(runs(60), seed + 1);
	});
});
