import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import {
	type Overview,
	OverviewSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { expect, it } from "vitest";
import { RecentRates } from "./recent-rates.ts";

function overviewOf(
	intervalMs: number | undefined,
	perSecond: number,
	init: Exclude<MessageInitShape<typeof OverviewSchema>, Overview> = {},
): Overview {
	return create(OverviewSchema, {
		...(intervalMs !== undefined && { rateInterval: durationFromMs(intervalMs) }),
		storage: { commitsPerSecond: perSecond },
		...init,
	});
}

it("averages rates over ten seconds, by the times over which they were measured", () => {
	const rates = new RecentRates();
	const commits = (intervalMs: number, perSecond: number) =>
		rates.add(overviewOf(intervalMs, perSecond)).storage?.commitsPerSecond;
	expect(commits(2_000, 8)).toBe(8);
	expect(commits(2_000, 0)).toBe(4);
	expect(commits(4_000, 0)).toBe(2);
	expect(commits(2_000, 10)).toBeCloseTo(3.6);
	// The first one has left the window.
	expect(commits(2_000, 0)).toBeCloseTo(2);
	expect(commits(60_000, 7)).toBe(7);
});

it("averages the rates of each type, controller and server, and leaves all else", () => {
	const rates = new RecentRates();
	const busy = overviewOf(2_000, 4, {
		types: [{ type: "a.v1.A", writesPerSecond: 4 }],
		controllers: [
			{ controller: { name: "c" }, reconcilesPerSecond: 6, failuresPerSecond: 2 },
			{ controller: { name: "gone" }, reconcilesPerSecond: 9 },
		],
		servers: [{ server: { name: "s" }, storage: { commitsPerSecond: 4, watches: 1n } }],
	});
	const idle = overviewOf(2_000, 0, {
		types: [{ type: "b.v1.B" }, { type: "a.v1.A", resources: 3n }],
		controllers: [{ controller: { name: "c" } }],
		servers: [
			{ server: { name: "other", missing: "no response" } },
			{ server: { name: "s" }, storage: { watches: 2n } },
		],
	});
	rates.add(busy);
	const { types, controllers, servers } = rates.add(idle);
	expect(types).toMatchObject([
		{ type: "b.v1.B", writesPerSecond: 0 },
		{ type: "a.v1.A", writesPerSecond: 2, resources: 3n },
	]);
	expect(controllers).toMatchObject([{ reconcilesPerSecond: 3, failuresPerSecond: 1 }]);
	expect(servers).toMatchObject([
		{ server: { name: "other" } },
		{ server: { name: "s" }, storage: { commitsPerSecond: 2, watches: 2n } },
	]);
});

it("begins again after an overview without rates", () => {
	const rates = new RecentRates();
	rates.add(overviewOf(2_000, 8));
	expect(rates.add(overviewOf(undefined, 0)).storage?.commitsPerSecond).toBe(0);
	expect(rates.add(overviewOf(2_000, 2)).storage?.commitsPerSecond).toBe(2);
});
