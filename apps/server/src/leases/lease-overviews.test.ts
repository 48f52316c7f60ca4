import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { LeaseKind, OverviewSchema } from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import { LocalLeases, LocalTimedLeases } from "@plinth/runtime";
import { FakeClock } from "@plinth/runtime/testing";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { GrantedLeases } from "./granted-leases.ts";
import { HeldLeases } from "./held-leases.ts";
import {
	type LeaseReport,
	leasesOfServer,
	mergeLeases,
	mostLeases,
	withVisibleLeases,
} from "./lease-overviews.ts";

const forever = new AbortController().signal;
const now = AbortSignal.abort();

/** The leases of servers that share a storage, in one process. */
function cluster() {
	const clock = new FakeClock();
	const local = new LocalLeases();
	const timed = new LocalTimedLeases({ leases: local, clock, isFirst: true });
	const server = (name: string) => {
		const held = new HeldLeases(local, clock);
		const granted = new GrantedLeases(timed, clock);
		const report = () => leasesOfServer({ held: held.current(), granted: granted.current() }, name);
		return { held, granted, report };
	};
	return { clock, local, server };
}

describe("the leases of a server", () => {
	it("have a kind, a name, and since when they are held; shards of a controller are one", async () => {
		const { clock, server } = cluster();
		const { held, report } = server("host/1");
		const sinceMs = clock.now();
		const names = ["peering-imports", "controllers-a-shard-10", "controllers-a-server-0f"];
		for (const name of [...names, "controllers", "controllers-b-server-0f"]) {
			await held.acquire(name, forever);
		}
		clock.advance(5_000);
		await held.acquire("controllers-a-shard-2", forever);
		const { leases, leasesTotal } = report();
		expect(leasesTotal).toBe(4);
		const heldSince = timestampFromMs(sinceMs);
		expect(leases).toMatchObject([
			{ kind: LeaseKind.SINGLETONS, name: "controllers", server: "host/1", heldSince },
			{
				...{ kind: LeaseKind.SHARDS, name: "controllers-a", shards: [2, 10] },
				heldSince: timestampFromMs(sinceMs + 5_000),
			},
			{ kind: LeaseKind.SHARDS, name: "controllers-b", shards: [], heldSince },
			{ kind: LeaseKind.SERVER, name: "peering-imports", heldSince },
		]);
		expect(leases.every(({ expiresAt }) => expiresAt === undefined)).toBe(true);
	});

	it("are those that it holds now: neither lost nor released, nor those of others", async () => {
		const { local, server } = cluster();
		const [one, other] = [server("host/1"), server("host/2")];
		const hold = await one.held.acquire("a", forever);
		await one.held.acquire("b", forever);
		const waits = other.held.acquire("a", forever);
		expect(other.report().leasesTotal).toBe(0);
		await hold.release();
		local.revoke("b");
		await waits;
		expect(one.report()).toEqual({ leases: [], leasesTotal: 0 });
		expect(other.report().leases).toMatchObject([{ name: "a", server: "host/2" }]);
	});

	it("of clients have a holder, and end unless they are renewed", async () => {
		const { clock, server } = cluster();
		const { granted, report } = server("host/1");
		const startMs = clock.now();
		await granted.grant("clients/tour", "h1", now);
		await granted.grant("clients/gone", "h2", now);
		// Another one has it.
		await granted.grant("clients/tour", "h3", now);
		clock.advance(9_000);
		await granted.renew("clients/tour", "h1");
		const tour = {
			...{ kind: LeaseKind.CLIENT, name: "tour", holder: "h1", server: "host/1" },
			heldSince: timestampFromMs(startMs),
			expiresAt: timestampFromMs(startMs + 19_000),
		};
		expect(report().leases).toMatchObject([{ name: "gone" }, tour]);
		clock.advance(1_000);
		expect(report().leases).toMatchObject([tour]);
		await granted.release("clients/tour", "h1");
		expect(report().leasesTotal).toBe(0);
	});

	it("are all, those of servers first", async () => {
		const { server } = cluster();
		const { held, granted, report } = server("host/1");
		for (let at = 0; at < 150; at += 1) {
			await granted.grant(`clients/${at}`, "h", now);
		}
		await held.acquire("controllers", forever);
		const { leases, leasesTotal } = report();
		expect([leases.length, leasesTotal, leases[0]?.name]).toEqual([151, 151, "controllers"]);
	});

	it("that clients leave to expire are forgotten, however many there were", async () => {
		const { clock, server } = cluster();
		const { granted, report } = server("host/1");
		for (let at = 0; at < 10_000; at += 1) {
			await granted.grant(`clients/${at}`, "h", now);
		}
		clock.advance(10_000);
		await granted.grant("clients/last", "h", now);
		expect(report()).toMatchObject({ leases: [{ name: "last" }], leasesTotal: 1 });
	});
});

describe("the leases of several servers", () => {
	it("are those of all, and one of a client is that of the server by which it ends last", async () => {
		const { clock, server } = cluster();
		const [one, other] = [server("host/1"), server("host/2")];
		await one.held.acquire("controllers", forever);
		await other.held.acquire("controllers-a-shard-1", forever);
		await one.granted.grant("clients/tour", "h1", now);
		await one.granted.grant("clients/mix", "h2", now);
		clock.advance(1_000);
		await other.granted.renew("clients/tour", "h1");
		const { leases, leasesTotal } = mergeLeases([one.report(), other.report()]);
		expect(
			leases.map(({ name, server: by, heldSince }) => [name, by, heldSince !== undefined]),
		).toEqual([
			["controllers", "host/1", true],
			["controllers-a", "host/2", true],
			["mix", "host/1", true],
			// The server that has renewed it does not know since when it is held.
			["tour", "host/2", false],
		]);
		expect(leasesTotal).toBe(4);
	});

	it("are all that each has reported, and count what each has left out", () => {
		const report = (server: string) => ({
			leases: Array.from({ length: mostLeases }, (_, at) => ({
				...create(OverviewSchema, { leases: [{ kind: LeaseKind.SERVER, name: `${at}`, server }] })
					.leases[0],
			})) as ReturnType<typeof leasesOfServer>["leases"],
			leasesTotal: 130,
		});
		const { leases, leasesTotal } = mergeLeases([report("host/1"), report("host/2")]);
		expect([leases.length, leasesTotal]).toEqual([2 * mostLeases, 260]);
	});
});

describe("the leases that a caller sees", () => {
	it("are those of servers, and those of clients that it may hold; all are counted", () => {
		const overview = create(OverviewSchema, {
			leases: [
				{ kind: LeaseKind.SERVER, name: "secret" },
				{ kind: LeaseKind.CLIENT, name: "tour" },
				{ kind: LeaseKind.CLIENT, name: "secret" },
			],
			leasesTotal: 3,
		});
		const seen = withVisibleLeases(overview, (name) => name === "tour");
		expect(seen.leases).toMatchObject([
			{ kind: LeaseKind.SERVER, name: "secret" },
			{ kind: LeaseKind.CLIENT, name: "tour" },
		]);
		expect(seen.leasesTotal).toBe(3);
		expect(overview.leases).toHaveLength(3);
		expect(() => toBinary(OverviewSchema, seen)).not.toThrow();
	});

	it("are the first hundred of those that it may see, wherever the others are in the order", () => {
		const seenOf = (overview: LeaseReport, mayHold: (name: string) => boolean) =>
			withVisibleLeases(create(OverviewSchema, overview), mayHold);
		const lease = fc.record({
			kind: fc.constantFrom(LeaseKind.SERVER, LeaseKind.CLIENT),
			name: fc.integer({ min: 100, max: 999 }).map((number) => `${number}`),
		});
		const server = fc.uniqueArray(lease, {
			maxLength: 300,
			selector: ({ kind, name }) => `${kind}/${name}`,
		});
		fc.assert(
			fc.property(server, server, fc.integer({ min: 1, max: 9 }), (own, others, divisor) => {
				const mayHold = (name: string) => Number(name) % divisor === 0;
				const report = (leases: typeof own, name: string): LeaseReport => ({
					leases: create(OverviewSchema, {
						leases: leases.map((each) => ({ ...each, server: name })),
					}).leases,
					leasesTotal: leases.length,
				});
				// Another server has filtered and limited what it reports.
				const sorted = mergeLeases([report(others, "b")]);
				const other = seenOf(sorted, mayHold);
				const seen = seenOf(mergeLeases([report(own, "a"), other]), mayHold);
				const keyOf = ({ kind, name }: { readonly kind: LeaseKind; readonly name: string }) =>
					`${kind}/${name}`;
				const visible = ({ kind, name }: (typeof own)[number]) =>
					kind === LeaseKind.SERVER || mayHold(name);
				const all = [
					...[...own, ...others].filter(({ kind }) => kind === LeaseKind.SERVER).map(keyOf),
					...new Set(
						[...own, ...others]
							.filter(({ kind }) => kind === LeaseKind.CLIENT)
							.filter(visible)
							.map(keyOf),
					),
				];
				expect(seen.leases.map(keyOf)).toEqual(all.sort().slice(0, mostLeases));
			}),
		);
	});
});
