import type { SeenEvent, WatchSession } from "./history.ts";
import type { RegisterChange, StorageRecord } from "./storage-record.ts";

/** The event that a watch must send for a change. */
interface Due {
	readonly revision: number;
	readonly kind: "upsert" | "delete";
	readonly register: string;
	readonly stored: { readonly version: string; readonly text: string };
	/** Whether it is the last one of its revision, and so carries it. */
	readonly isLast: boolean;
}

/**
 * The problems of watches, compared with the record of the storage: each must begin with the state of its
 * version, or after the version that it resumed from, and then send every change in order, once.
 */
export function watchProblems(
	sessions: readonly WatchSession[],
	record: StorageRecord,
): readonly string[] {
	const due = dueEvents(record.registers);
	return sessions.flatMap((session, index) => {
		const problem = sessionProblem(session, due, record.registers);
		return problem === undefined ? [] : [`watch ${index}, life ${session.life}: ${problem}`];
	});
}

function dueEvents(changes: readonly RegisterChange[]): readonly Due[] {
	const current = new Map<string, { readonly version: string; readonly text: string }>();
	return changes.map(({ revision, register, text }, index) => {
		const isLast = changes[index + 1]?.revision !== revision;
		const before = current.get(register) ?? { version: "", text: "" };
		if (text === undefined) {
			current.delete(register);
			return { revision, register, isLast, kind: "delete", stored: before };
		}
		const stored = { version: String(revision), text };
		current.set(register, stored);
		return { revision, register, isLast, kind: "upsert", stored };
	});
}

function sessionProblem(
	session: WatchSession,
	due: readonly Due[],
	changes: readonly RegisterChange[],
): string | undefined {
	let after = Number(session.afterVersion);
	let live = session.events;
	if (session.afterVersion === "") {
		const end = live.findIndex(({ kind }) => kind === "end-of-snapshot");
		if (end < 0) {
			return session.complete ? "its snapshot has no end" : undefined;
		}
		after = Number(live[end]?.version);
		const problem = snapshotProblem(live.slice(0, end), after, changes);
		if (problem !== undefined) {
			return problem;
		}
		live = live.slice(end + 1);
	}
	const from = due.findIndex(({ revision }) => revision > after);
	const expected = from < 0 ? [] : due.slice(from);
	for (const [index, event] of live.entries()) {
		const next = expected[index];
		if (next === undefined || !isDue(event, next)) {
			return `after ${after}, event ${index} is ${describe(event)} instead of ${describe(next)}`;
		}
	}
	return session.complete && live.length < expected.length
		? `after ${after}, ${expected.length - live.length} events are missing, from ${describe(expected[live.length])} on`
		: undefined;
}

function isDue(event: SeenEvent, due: Due): boolean {
	return (
		event.kind === due.kind &&
		event.register === due.register &&
		event.stored.version === due.stored.version &&
		event.stored.text === due.stored.text &&
		event.version === (due.isLast ? String(due.revision) : "")
	);
}

function snapshotProblem(
	events: readonly SeenEvent[],
	revision: number,
	changes: readonly RegisterChange[],
): string | undefined {
	const expected = new Map<string, string>();
	for (const change of changes) {
		if (change.revision > revision) {
			break;
		}
		if (change.text === undefined) {
			expected.delete(change.register);
		} else {
			expected.set(change.register, `${change.text}@${change.revision}`);
		}
	}
	for (const event of events) {
		if (
			event.kind !== "upsert" ||
			expected.get(event.register) !== `${event.stored.text}@${event.stored.version}`
		) {
			return `snapshot ${revision} has ${describe(event)} instead of ${event.kind === "upsert" && expected.get(event.register)}`;
		}
		expected.delete(event.register);
	}
	return expected.size === 0
		? undefined
		: `snapshot ${revision} lacks ${[...expected.keys()].join(", ")}`;
}

function describe(event: SeenEvent | Due | undefined): string {
	return event === undefined || event.kind === "end-of-snapshot"
		? (event?.kind ?? "nothing")
		: `${event.kind} ${event.register} of ${event.stored.text}@${event.stored.version}`;
}
