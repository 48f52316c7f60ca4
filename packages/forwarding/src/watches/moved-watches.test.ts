/**
 * Watches that move between two servers with different lags, at random instants: each client must receive what a direct
 * watch would have sent. Planted faults show that the test finds gaps and repetitions.
 */
import { seededRandom } from "@plinth/runtime/testing";
import { seeds } from "@plinth/test-support";
import { afterEach, describe, expect, it, vi } from "vitest";
import { defaultForwardingLimits } from "../limits.ts";
import { FollowedWatch } from "./followed-watch.ts";
import type { WatchMethod } from "./scanned-message.ts";
import {
	below,
	decodeEvents,
	encodeRequest,
	History,
	type ModelEvent,
	ModelServer,
	views,
} from "./two-servers.fixture.ts";
import { WatchPosition } from "./watch-position.ts";

const memory = { take: () => true, give: () => {} };
const contentTypes = { binary: "application/grpc", json: "application/connect+json" } as const;

interface Run {
	readonly method: WatchMethod;
	readonly format: "binary" | "json";
	readonly seed: number;
	/** A planted fault: a watch of a set that a server refuses stays with that server. */
	readonly staysRefused?: boolean;
}

/** Runs one history. @returns what was wrong. */
function violations({ method, format, seed, staysRefused = false }: Run): readonly string[] {
	const random = seededRandom(seed);
	const history = new History(random);
	for (let count = below(random, 4); count > 0; count -= 1) {
		history.commit();
	}
	const servers = [new ModelServer(history, random), new ModelServer(history, random)] as const;
	servers[0].apply();
	const resumesAfter = random.next() < 0.3 && history.last > 1_000 ? String(history.last) : "";
	const bookmarks = random.next() < 0.5;
	const request = encodeRequest(method, format, resumesAfter, bookmarks);
	const followed = FollowedWatch.of(...([method, contentTypes[format], request] as const), {
		limits: defaultForwardingLimits,
		memory,
		watchRequests: memory,
	});
	if (followed === undefined) {
		throw new Error("the request can't be read");
	}
	const received: Uint8Array[] = [];
	let current = 0;
	let stream = servers[0].open(method, format, request);
	let isOver = false;
	const deliver = (most: number) => {
		const { bytes, isLost, mustMove } = followed.receive(stream.read(most));
		received.push(...(bytes === undefined ? [] : [bytes]));
		if (isLost) {
			throw new Error("a message could not be read");
		}
		if (mustMove && !staysRefused) {
			move();
		}
	};
	const move = () => {
		const next = followed.moveOn();
		if (next.kind === "request" || next.kind === "all-ended") {
			received.push(next.ends);
		}
		if (next.kind === "request") {
			current = 1 - current;
			stream = servers[current === 0 ? 0 : 1].open(method, format, next.body);
		} else {
			isOver = true;
		}
	};
	for (let step = 0; step < 60 && !isOver; step += 1) {
		const chance = random.next();
		if (chance < 0.3) {
			history.commit();
		} else if (chance < 0.5) {
			servers[below(random, 2) === 0 ? 0 : 1].apply(1 + below(random, 2));
		} else if (chance < 0.9) {
			deliver(1 + below(random, 700));
		} else {
			move();
		}
	}
	for (let chunk = 0; chunk < 200 && !isOver; chunk += 1) {
		servers[current === 0 ? 0 : 1].apply();
		deliver(4_096);
	}
	const events = decodeEvents(method, format, Buffer.concat(received));
	return [...views]
		.filter(([id]) => (method === "WatchList") === (id === ""))
		.flatMap(([id, sees]) =>
			[
				...judge(events.get(id) ?? [], history, sees, resumesAfter, isOver),
				...judgeBookmarks(events.get(id) ?? [], bookmarks),
			].map((violation) => `watch ${JSON.stringify(id)}: ${violation}`),
		);
}

function judgeBookmarks(events: readonly ModelEvent[], areWanted: boolean): readonly string[] {
	const hasAny = events.some(({ kind }) => kind === "bookmark");
	return hasAny && !areWanted ? ["a bookmark that the client has not asked for"] : [];
}

/** What is wrong with the events that a client has received of one watch. */
function judge(
	events: readonly ModelEvent[],
	history: History,
	sees: (name: string) => boolean,
	resumesAfter: string,
	isOver: boolean,
): readonly string[] {
	const found: string[] = [];
	const end = events.findIndex(({ kind }) => kind === "endOfSnapshot");
	const isCut = resumesAfter === "" && end === -1;
	if (isCut) {
		const hasEnded = isOver || events.at(-1)?.kind === "end";
		return hasEnded ? [] : ["the snapshot is not complete, and the watch has not ended"];
	}
	let version = resumesAfter;
	if (resumesAfter === "") {
		version = events[end]?.version ?? "";
		const expected = history.snapshot(Number(version), sees);
		if (textOf(events.slice(0, end + 1)) !== textOf(expected)) {
			found.push(`the snapshot at ${version} is another one`);
		}
	}
	const live = events.slice(end + 1);
	const changes = live.filter(({ kind }) => kind !== "bookmark");
	const expected = history.after(Number(version), Number.POSITIVE_INFINITY, sees);
	if (textOf(changes) !== textOf(expected)) {
		found.push(`received ${textOf(changes)} instead of ${textOf(expected)}`);
	}
	let reached = Number(version);
	let changed = 0;
	for (const [index, event] of live.entries()) {
		changed = Math.max(changed, Number(event.of ?? 0));
		if (event.version === undefined) {
			continue;
		}
		if (Number(event.version) < reached) {
			found.push(`version ${event.version} after ${reached}`);
		}
		if (Number(event.version) < changed) {
			found.push(`${event.kind} ${event.version} after a change of ${changed}`);
		}
		reached = Number(event.version);
		const isEarly = live
			.slice(index + 1)
			.some(({ kind, of }) => kind === "upsert" && Number(of) <= reached);
		if (isEarly) {
			found.push(`${event.kind} ${event.version} before a change of that version`);
		}
	}
	return found;
}

function textOf(events: readonly ModelEvent[]): string {
	return events
		.map(({ kind, name, of, version = "" }) => `${kind} ${name}@${of}/${version}`)
		.join(", ");
}

const runs: readonly (readonly [WatchMethod, "binary" | "json"])[] = [
	["WatchList", "binary"],
	["WatchList", "json"],
	["WatchSet", "binary"],
	["WatchSet", "json"],
];

afterEach(() => {
	vi.restoreAllMocks();
});

function findsViolations(run: Omit<Run, "seed">, pattern: RegExp): void {
	const isFound = [...seeds(300)].some((seed) =>
		violations({ ...run, seed }).some((violation) => pattern.test(violation)),
	);
	expect(isFound).toBe(true);
}

describe.each(runs)("watches of %s in %s that move", (method, format) => {
	it("receive what a direct watch sends", () => {
		for (const seed of seeds(80)) {
			expect(violations({ method, format, seed }), `seed ${seed}`).toEqual([]);
		}
	});

	it("are found to repeat events if what was passed on is forgotten", () => {
		vi.spyOn(WatchPosition.prototype, "continued").mockImplementation(() => {});
		findsViolations({ method, format }, /instead of/);
	});

	it("are found to go back if a bookmark is passed on before what is expected", () => {
		const decide = WatchPosition.prototype.decide;
		vi.spyOn(WatchPosition.prototype, "decide").mockImplementation(function (
			this: WatchPosition,
			event,
		) {
			const decision = decide.call(this, event);
			return event.kind === "bookmark" ? "pass" : decision;
		});
		findsViolations({ method, format }, /bookmark \d+ after a change of \d+/);
	});

	it("are found to miss events if they resume after a version that is too new", () => {
		const { get } = Object.getOwnPropertyDescriptor(WatchPosition.prototype, "continuation") ?? {};
		vi.spyOn(WatchPosition.prototype, "continuation", "get").mockImplementation(function (
			this: WatchPosition,
		) {
			const continuation = get?.call(this);
			return continuation.kind === "after"
				? { kind: "after", version: String(Number(continuation.version) + 2) }
				: continuation;
		});
		findsViolations({ method, format }, /instead of/);
	});
});

describe.each(["binary", "json"] as const)(
	"watches of a set in %s that servers refuse",
	(format) => {
		it("are found to miss events if they stay refused", () => {
			findsViolations({ method: "WatchSet", format, staysRefused: true }, /instead of/);
		});
	},
);
