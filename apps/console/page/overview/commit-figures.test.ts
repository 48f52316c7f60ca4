import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { StorageOverviewSchema } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { expect, it } from "vitest";
import { commitFigures, hasCommitFigures } from "./commit-figures.ts";

function figures(init: MessageInitShape<typeof StorageOverviewSchema>) {
	const storage = create(StorageOverviewSchema, init);
	return { known: hasCommitFigures(storage), shown: Object.values(commitFigures(storage)) };
}

const commitDurations = [3n, ...new Array<bigint>(14).fill(0n), 1n];

it("shows what commits took, and how many share a write", () => {
	const commitMedian = { seconds: 0n, nanos: 350_000 };
	const commitP99 = { seconds: 0n, nanos: 12_400_000 };
	expect(
		figures({ commitDurations, commitMedian, commitP99, batches: 3n, batchedCommits: 7n }),
	).toEqual({ known: true, shown: ["4", "0.35 ms", "12 ms", "plain", "2.3"] });
});

it("marks commits that callers wait for", () => {
	const slow = (seconds: bigint) =>
		figures({ commitDurations, commitP99: { seconds, nanos: 0 } }).shown.slice(2, 4);
	expect([slow(1n), slow(5n)]).toEqual([
		["1.0 s", "bad"],
		["≥ 5.0 s", "bad"],
	]);
});

it("shows no figure that is not known", () => {
	const none = commitDurations.map(() => 0n);
	expect(figures({ commitDurations: none })).toEqual({
		...{ known: true, shown: ["0", "–", "–", "plain", "–"] },
	});
	// An earlier version of the server.
	expect(figures({ commits: 7n, commitsPerSecond: 3 })).toEqual({
		...{ known: false, shown: ["–", "–", "–", "plain", "–"] },
	});
});
