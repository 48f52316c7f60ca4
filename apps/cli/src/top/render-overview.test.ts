import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Phase, Placement } from "@plinth/proto/gen/plinth/controller/v1/controller_service_pb.js";
import {
	LeaseKind,
	type Overview,
	OverviewSchema,
} from "@plinth/proto/gen/plinth/server/v1/server_service_pb.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { oneLine } from "../output/printable.ts";
import { textWidth } from "../output/text-width.ts";
import { renderOverview } from "./render-overview.ts";

const mebibyte = 1024 * 1024;

/** The fields of an overview, unlike a whole message. */
type Init = Exclude<MessageInitShape<typeof OverviewSchema>, Overview>;

function controller(name: string, failing = 0, phase: Phase = Phase.RUNNING) {
	return {
		controller: {
			...{ name, phase, manages: "demo.v2.Artist", placement: Placement.SINGLETON },
			requests: { failing, live: 3 },
			servers: [{ server: "host/1", phase }],
		},
		reconcilesPerSecond: 12.34,
	};
}

function overviewOf(init: Init = {}) {
	const storage = {
		...{ kind: "etcd", version: "123456", resources: 123_456n, watches: 84n, leases: 3 },
		...{ bytes: BigInt(200 * mebibyte), retainedBytes: 4_096n, commitsPerSecond: 7.25 },
	};
	const process = {
		...{ uptime: durationFromMs(7_500_000), cpu: 0.42, eventLoopDelay: durationFromMs(250) },
		...{ residentBytes: BigInt(300 * mebibyte), heapUsedBytes: 50n, heapLimitBytes: 100n },
	};
	return create(OverviewSchema, {
		takenAt: timestampFromMs(Date.UTC(2026, 0, 1)),
		servers: [
			{ server: { name: "host/1", version: "1.0.0" }, process, storage },
			{ server: { name: "host/2", missing: "did not respond in time" } },
		],
		controllers: [
			controller("quiet"),
			controller("failing", 7),
			controller("starting", 0, Phase.BACKING_OFF),
		],
		storage,
		types: [
			{ type: "demo.v2.Album", resources: 10n },
			{
				type: "demo.v2.Artist",
				resources: 123_446n,
				withFalseCondition: 2n,
				writesPerSecond: 0.04,
			},
			{ type: "demo.v2.Tour", resources: 0n, withStaleCondition: 1n },
		],
		...init,
	});
}

const server = "http://127.0.0.1:7575";

function rendered(columns: number | undefined, rows?: number, init?: Init, lost?: string) {
	const size = { width: columns, height: rows, color: false };
	return renderOverview({ server, overview: overviewOf(init), lost }, size);
}

/** The first words of the lines of a table. */
function namesIn(lines: readonly string[], heading: string): readonly string[] {
	const start = lines.findIndex((line) => line.startsWith(heading));
	const end = lines.indexOf("", start);
	return lines.slice(start + 1, end < 0 ? undefined : end).map((line) => line.split(" ")[0] ?? "");
}

describe("an overview in a terminal", () => {
	it("has what needs attention first, at 80 columns", () => {
		const lines = rendered(80);
		expect(lines.join("\n").replace(/\d\d:\d\d:\d\d/, "12:00:00")).toBe(
			`http://127.0.0.1:7575  2 servers  12:00:00
etcd version 123456  123k resources  200MiB and 4.0KiB kept  7.3 commits/s  84 …
needs attention: 2 controllers, 2 with a false condition, 1 with a stale one
host/2 did not respond in time

SERVER  UP  CPU  DELAY  MEMORY  HEAP  COMMITS/S  WATCHES  LEASES
host/1  2h  42%  250ms  300MiB  50%   7.3        84       3

CONTROLLER  PHASE        QUEUED  RUNNING  FAILING  DONE/S  FAILED/S
starting    backing off  3       0        0        12      0
failing     running      3       0        7        12      0
quiet       running      3       0        0        12      0

TYPE            RESOURCES  WRITES/S  FALSE  STALE
demo.v2.Artist  123k       0.1       2      0
demo.v2.Tour    0          0         0      1
demo.v2.Album   10         0         0      0`,
		);
	});

	it("has more columns at 200, and cuts nothing", () => {
		const lines = rendered(200);
		expect(lines.join("\n")).not.toContain("…");
		expect(lines.find((line) => line.startsWith("CONTROLLER"))).toBe(
			"CONTROLLER  MANAGES         RUNS-ON  PHASE        QUEUED  DELAYED  RUNNING  FAILING  DONE/S  FAILED/S",
		);
		expect(lines.find((line) => line.startsWith("SERVER"))).toContain("STORED VERSION");
	});

	it("shows how long commits take, and how many share a write, if servers know", () => {
		const storage = {
			...{ commitsPerSecond: 7, batches: 4n, batchedCommits: 10n },
			...{ commitMedian: { seconds: 0n, nanos: 350_000 } },
			...{ commitP99: { seconds: 0n, nanos: 212_000_000 } },
		};
		const knowing = { server: { name: "host/1" }, process: {}, storage };
		const older = { server: { name: "host/3" }, process: {}, storage: { commitsPerSecond: 1 } };
		const servers = [knowing, older];
		const lines = (columns: number) =>
			rendered(columns, undefined, { servers }).filter((line) => /^(SERVER|host)/.test(line));
		expect(lines(80)).toEqual([
			"SERVER  UP  CPU  DELAY  MEMORY  HEAP  COMMITS/S  P99    WATCHES  LEASES",
			"host/1      0%   -      0B      0%    7.0        212ms  0        0",
			"host/3      0%   -      0B      0%    1.0        -      0        0",
		]);
		const [heading, first, second] = lines(200);
		expect(heading).toMatch(/COMMITS\/S {2}MEDIAN {2}P99 {4}PER-WRITE {2}WATCHES/);
		expect(first).toMatch(/ 7.0 +0.35ms {2}212ms {2}2.5 /);
		expect(second).toMatch(/ 1.0 +- +- +- +0 /);
	});

	it("shows who holds which lease below all others, if these leave room", () => {
		const heldSince = timestampFromMs(Date.UTC(2026, 0, 1) - 7_500_000);
		const leases = [
			{ kind: LeaseKind.SINGLETONS, name: "controllers", server: "host/1", heldSince },
			{
				kind: LeaseKind.SHARDS,
				name: "controllers-p",
				server: "host/2",
				shards: [1, 7],
				heldSince,
			},
			{ kind: LeaseKind.SERVER, name: "peering-imports", server: "host/2", heldSince },
			{ kind: LeaseKind.CLIENT, name: "\x1b[31mred", server: "host/1", holder: "h1" },
		];
		const init = { leases, leasesTotal: 9 };
		const others = rendered(80).length;
		const expected = [
			"",
			"LEASE            FOR         HELD-BY  HELD",
			"controllers      singletons  host/1   2h",
			"controllers-p    2 shards    host/2   2h",
			"peering-imports  server      host/2   2h",
			expect.stringMatching(/red +client +h1 +-$/),
			"… 5 more",
		];
		expect(rendered(80, undefined, init).slice(others)).toEqual(expected);
		expect(rendered(80, others + 7, init).slice(others)).toEqual(expected);
		expect(rendered(80, undefined, init).join("")).not.toContain("\x1b");
		expect(rendered(80, others + 4, init).slice(others)).toEqual([
			"",
			"LEASE        FOR         HELD-BY  HELD",
			"controllers  singletons  host/1   2h",
			"… 8 more",
		]);
		expect(rendered(80, others + 3, init)).toEqual(rendered(80, others + 3));
		expect(rendered(80, others - 3, init)).toEqual(rendered(80, others - 3));
	});

	it("counts resources that are being deleted, if there are any", () => {
		const types = [
			{ type: "demo.v2.Album", resources: 10n },
			{ type: "demo.v2.Tour", resources: 4n, beingDeleted: 3n },
		];
		const lines = rendered(80, undefined, { types, controllers: [] });
		expect(lines[2]).toBe("needs attention: 3 being deleted");
		expect(lines.slice(-3)).toEqual([
			"TYPE           RESOURCES  WRITES/S  FALSE  STALE  DELETING",
			"demo.v2.Tour   4          0         0      0      3",
			"demo.v2.Album  10         0         0      0      0",
		]);
	});

	it("shows slow reconciles only if there are any", () => {
		const slow = { ...controller("slow"), stillRunning: 2 };
		const heading = rendered(80, undefined, { controllers: [slow] })[8];
		expect(heading).toMatch(/FAILED\/S {2}SLOW$/);
	});

	it("says so if nothing needs attention, and if the connection is lost", () => {
		const calm = { controllers: [controller("quiet")], types: [], servers: [] };
		expect(rendered(80, 40, calm)[2]).toBe("nothing needs attention");
		expect(rendered(80, 40, calm, "refused")[3]).toBe("connection lost: refused: reconnecting");
	});

	it("shows the most urgent rows of each table in a low terminal, and how many there are besides", () => {
		const controllers = Array.from({ length: 30 }, (_, index) => controller(`c${index}`, index));
		const types = Array.from({ length: 50 }, (_, index) => ({ type: `t${index}` }));
		const lines = rendered(80, 24, { controllers, types });
		expect(lines).toHaveLength(24);
		expect(namesIn(lines, "CONTROLLER").slice(0, 2)).toEqual(["c29", "c28"]);
		expect(lines.filter((line) => line.startsWith("…"))).toEqual(["… 24 more", "… 45 more"]);
	});

	it("never exceeds the terminal, whatever its size and whatever servers report", () => {
		const text = fc.string({ unit: "grapheme", maxLength: 100 });
		const figures = fc.record({
			type: text,
			resources: fc.bigInt(0n, 2n ** 63n),
			withFalseCondition: fc.bigInt(0n, 2n ** 63n),
			writesPerSecond: fc.double({ min: 0, max: 1e15, noNaN: true }),
		});
		const controllers = fc.record({
			controller: fc.record({
				...{ name: text, manages: text, phase: fc.constantFrom(Phase.RUNNING, Phase.STOPPED) },
				restarts: fc.nat(),
				requests: fc.record({ failing: fc.nat(), live: fc.nat(), active: fc.nat() }),
			}),
			reconcilesPerSecond: fc.double({ min: 0, max: 1e9, noNaN: true }),
			failuresPerSecond: fc.double({ min: 0, max: 1e9, noNaN: true }),
			stillRunning: fc.nat(),
		});
		fc.assert(
			fc.property(
				fc.constantFrom(79, 80, 199, 200),
				fc.integer({ min: 1, max: 60 }),
				fc.array(figures, { maxLength: 30 }),
				fc.array(controllers, { maxLength: 30 }),
				text,
				(columns, rows, types, all, name) => {
					const servers = [{ server: { name, missing: name } }, { server: { name } }];
					const leases = { leases: all.map(() => ({ name, server: name })), leasesTotal: rows };
					const init = { types, controllers: all, servers, ...leases };
					const lines = rendered(columns, rows, init, name);
					expect(lines.length).toBeLessThanOrEqual(rows);
					for (const line of lines) {
						expect(textWidth(line)).toBeLessThanOrEqual(columns);
						expect(oneLine(line)).toBe(line);
					}
				},
			),
		);
	});
});
