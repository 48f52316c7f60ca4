import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { createContextValues } from "@connectrpc/connect";
import type { ReportCall, ServerReport } from "@plinth/controller";
import {
	type Overview,
	OverviewSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { tokenOf } from "@plinth/resource-service";
import { FakeClock } from "@plinth/runtime/testing";
import { describe, expect, it } from "vitest";
import { SharedOverviews } from "./shared-overviews.ts";

const own = { name: "host/1", address: "http://10.0.0.1", startedAtMs: 0, version: "1.0.0" };

/** Overviews of a server of a cluster, with the tokens of the questions to others, and the number of own overviews. */
function start() {
	const clock = new FakeClock();
	const asked: (string | undefined)[] = [];
	const headers: Headers[] = [];
	let taken = 0;
	/** Settles what the others report. */
	let others: Promise<readonly ServerReport<never>[]> = Promise.resolve([]);
	const overviews = new SharedOverviews({
		own: () => {
			taken += 1;
			const uptime = durationFromMs(clock.monotonic() + 1);
			return create(OverviewSchema, { servers: [{ process: { uptime } }] });
		},
		cluster: {
			own,
			askOthers: (call) => {
				asked.push(tokenOf(call));
				headers.push(call.requestHeader);
				return others;
			},
		},
		clock,
		end: new AbortController().signal,
	});
	const take = (token: string, thisServerOnly = false): Promise<Overview> =>
		overviews.take(callOf({ authorization: `Bearer ${token}` }), thisServerOnly);
	const takeWith = (sent: Record<string, string>) => overviews.take(callOf(sent), false);
	return {
		...{ clock, asked, headers, take, takeWith, taken: () => taken },
		othersReport: (reports: typeof others) => {
			others = reports;
		},
	};
}

function callOf(sent: Record<string, string>): ReportCall {
	const requestHeader = new Headers(sent);
	const { signal } = new AbortController();
	return { requestHeader, signal, timeoutMs: () => undefined, values: createContextValues() };
}

describe("shared overviews", () => {
	it("are one for all viewers at the same time", async () => {
		const { clock, take, taken, asked } = start();
		for (let round = 1; round <= 3; round += 1) {
			const all = await Promise.all(Array.from({ length: 20 }, () => take("a")));
			expect(new Set(all).size).toBe(1);
			expect([taken(), asked.length]).toEqual([round, round]);
			clock.advance(1_000);
		}
	});

	it("cost nothing without viewers: there is no timer", async () => {
		const { clock, take, taken } = start();
		await take("a");
		expect(clock.nextTimerMs()).toBeUndefined();
		clock.advance(3_600_000);
		expect(taken()).toBe(1);
	});

	it("are shared while the other servers have not responded, for however long", async () => {
		const { clock, take, taken, othersReport } = start();
		const { promise, resolve } = Promise.withResolvers<readonly ServerReport<never>[]>();
		othersReport(promise);
		const first = take("a");
		clock.advance(1_900);
		const second = take("a");
		resolve([]);
		expect(await first).toBe(await second);
		expect(taken()).toBe(1);
	});

	it("contain of other servers only what these have reported for the same token", async () => {
		const { take, asked, taken } = start();
		const [a, b, again, alone] = await Promise.all([
			take("a"),
			take("b"),
			take("a"),
			take("c", true),
		]);
		expect(asked).toEqual(["a", "b"]);
		expect(again).toBe(a);
		expect(b).not.toBe(a);
		expect(alone.servers).toHaveLength(1);
		// The own part is the same for all.
		expect(taken()).toBe(1);
	});

	it("are the same for a token however it is sent, and for all calls without one", async () => {
		const { takeWith, asked } = start();
		const withToken = [
			{ authorization: "Bearer a" },
			{ authorization: "bearer a" },
			{ "x-plinth-token": "a" },
		];
		expect(new Set(await Promise.all(withToken.map(takeWith))).size).toBe(1);
		const without = [{}, { authorization: "Basic eDp5" }, { authorization: "Basic ejp6" }];
		expect(new Set(await Promise.all(without.map(takeWith))).size).toBe(1);
		expect(asked).toEqual(["a", undefined]);
	});

	it("do not depend on other headers of the call that is the first", async () => {
		const { takeWith, headers } = start();
		await takeWith({ authorization: "Bearer a", "x-plinth-consistency-mode": "malformed" });
		expect(headers.map((sent) => [...sent.keys()])).toEqual([["x-plinth-token"]]);
	});

	it("are remembered for a bounded number of tokens, those used last", async () => {
		const { clock, take } = start();
		const hasRates = async (token: string) => (await take(token)).rateInterval !== undefined;
		await take("seldom");
		for (let other = 0; other < 1_000; other += 1) {
			await take(`other-${other}`);
			clock.advance(10);
			await take("often");
		}
		expect(await hasRates("often")).toBe(true);
		expect(await hasRates("seldom")).toBe(false);
	});

	it("have rates since the last one, unless that is too old", async () => {
		const { clock, take } = start();
		expect((await take("a")).rateInterval).toBeUndefined();
		clock.advance(2_000);
		expect((await take("a")).rateInterval).toEqual(durationFromMs(2_000));
		clock.advance(120_001);
		expect((await take("a")).rateInterval).toBeUndefined();
	});

	it("are taken again after a failure", async () => {
		const { take, othersReport } = start();
		othersReport(Promise.reject(new Error("no")));
		await expect(take("a")).rejects.toThrow("no");
		othersReport(Promise.resolve([]));
		await expect(take("a")).resolves.toBeDefined();
	});
});
