import {
	type Call,
	type Effect,
	effectOf,
	type NewState,
	type Outcome,
	type State,
} from "./rules.fixture.ts";

/*
 * A check that the calls on one resource are linearizable: there is an order of all calls, consistent with real
 * time, in which each call changed the resource as the rules require and returned the matching response.
 *
 * In general, that order must be searched for. Here a watch has recorded it: revisions order all calls that changed
 * the resource, so only the places of the other calls are unknown.
 *
 *   revisions      0 ────────── 12 ─────── 15 ─────────── 19 ───── …
 *   states         not there    A          B              not there
 *                               ▲          ▲              ▲
 *   calls that changed it:      create     write status   delete     each at its own revision
 *   calls that did not:    ├─ NotFound ─┤  ├─ read B ─┤              somewhere within
 *
 * Calls are placed in the order in which they were made, each after all calls that had returned by then. A call that
 * changed nothing gets the first such place at which the rules give its response. Since all constraints are lower
 * bounds, an earlier place is never worse for later calls. If this placement fails, there is no order.
 */

/** A call and its outcome. `made` and `returned` are ticks of one clock. */
export interface Operation {
	readonly name: string;
	readonly call: Call;
	readonly outcome: Outcome;
	readonly made: number;
	readonly returned: number;
}

/** One event of a watch that began before all calls. */
export interface SeenEvent {
	readonly name: string;
	readonly version: string;
	readonly kind: "upsert" | "delete";
	readonly state: State;
}

/** An observation that no order of the calls explains. */
export class Violation extends Error {
	override readonly name = "Violation";
}

/** A state that a resource was in, from a revision on. */
interface Phase {
	readonly revision: number;
	readonly state: State | undefined;
}

/**
 * Checks the events of a watch, and the calls on each resource against them.
 *
 * @throws Violation
 */
export function checkLinearizable(
	events: readonly SeenEvent[],
	operations: readonly Operation[],
): void {
	const histories = historiesOf(events);
	const names = new Set([...histories.keys(), ...operations.map((operation) => operation.name)]);
	for (const name of names) {
		checkResource(
			histories.get(name) ?? [{ revision: 0, state: undefined }],
			operations.filter((operation) => operation.name === name),
		);
	}
}

/** The states of each resource by revision. */
function historiesOf(events: readonly SeenEvent[]): Map<string, Phase[]> {
	const histories = new Map<string, Phase[]>();
	let newest = 0;
	for (const event of events) {
		const revision = Number(event.version);
		if (!(revision > newest)) {
			throw new Violation(`event of version ${event.version} after one of version ${newest}`);
		}
		newest = revision;
		const phases = histories.get(event.name) ?? [{ revision: 0, state: undefined }];
		histories.set(event.name, phases);
		const { state: before } = phases.at(-1) ?? {};
		if (event.kind === "delete") {
			if (!isEqual(event.state, before)) {
				throw new Violation(`delete event ${event.version} of what was not stored`);
			}
			phases.push({ revision, state: undefined });
		} else {
			if (event.state.version !== event.version) {
				throw new Violation(`upsert event ${event.version} of version ${event.state.version}`);
			}
			phases.push({ revision, state: event.state });
		}
	}
	return histories;
}

function checkResource(phases: readonly Phase[], operations: readonly Operation[]): void {
	/** Revisions that a call accounts for. */
	const explained = new Set<number>([0]);
	const placed: { readonly operation: Operation; readonly place: number }[] = [];
	for (const operation of operations.toSorted((a, b) => a.made - b.made)) {
		let from = 0;
		for (const earlier of placed) {
			if (earlier.operation.returned < operation.made) {
				from = Math.max(from, earlier.place);
			}
		}
		const committed = revisionOf(operation);
		let place: number | undefined;
		if (committed === undefined) {
			place = placeOf(phases, operation, from);
		} else if (committed > from && !explained.has(committed)) {
			checkChange(phases, operation, committed);
			explained.add(committed);
			place = committed;
		}
		if (place === undefined) {
			throw new Violation(`no place from revision ${from} on for ${describe(operation)}`);
		}
		placed.push({ operation, place });
	}
	for (const { revision } of phases) {
		if (!explained.has(revision)) {
			throw new Violation(`nothing requested the change at revision ${revision}`);
		}
	}
	checkFreshness(phases);
}

/** The revision at which a call changed the resource, if it did. */
function revisionOf({ call, outcome }: Operation): number | undefined {
	if (outcome.kind === "done") {
		return outcome.version === "" ? undefined : Number(outcome.version);
	}
	return outcome.kind === "resource" && (call.kind === "write" || call.kind === "write-status")
		? Number(outcome.state.version)
		: undefined;
}

/** The first place at which a call that changed nothing gets the response that it got. */
function placeOf(
	phases: readonly Phase[],
	{ call, outcome }: Operation,
	from: number,
): number | undefined {
	for (const [index, { revision, state }] of phases.entries()) {
		const until = phases[index + 1]?.revision ?? Number.POSITIVE_INFINITY;
		if (until <= from) {
			continue;
		}
		const effect = effectOf(call, state);
		if (effect.kind === "none" && isEqual(effect.outcome, outcome)) {
			const place = call.kind === "listed" ? Number(call.version) : Math.max(from, revision);
			if (place >= from && place >= revision && place < until) {
				return place;
			}
		}
	}
	return undefined;
}

/** Checks the effect and the response of a call at its revision against the rules. */
function checkChange(phases: readonly Phase[], operation: Operation, committed: number): void {
	const { call, outcome } = operation;
	const index = phases.findIndex(({ revision }) => revision === committed);
	const before = phases[index - 1];
	const after = phases[index];
	if (before === undefined || after === undefined) {
		throw new Violation(`no event tells of ${describe(operation)}`);
	}
	const effect = effectOf(call, before.state);
	if (!explains(effect, before.state, after.state, outcome)) {
		throw new Violation(
			`${describe(operation)} does not explain ${JSON.stringify(before.state)} to ${JSON.stringify(after.state)}`,
		);
	}
}

function explains(
	effect: Effect,
	before: State | undefined,
	after: State | undefined,
	outcome: Outcome,
): boolean {
	switch (effect.kind) {
		case "none":
			return false;
		case "removed":
			return (
				after === undefined &&
				(outcome.kind === "done" ||
					(outcome.kind === "resource" &&
						outcome.state.uid === before?.uid &&
						isLike(outcome.state, effect.last)))
			);
		case "stored":
			return (
				after !== undefined &&
				(outcome.kind === "done" ||
					(outcome.kind === "resource" && isEqual(outcome.state, after))) &&
				isLike(after, effect.state) &&
				(before === undefined || before.uid === after.uid) &&
				effect.freshGeneration === (before?.generation !== after.generation)
			);
	}
}

/** Changed uids and generations must be new: none is reused. */
function checkFreshness(phases: readonly Phase[]): void {
	const seen = new Set<string>();
	let before: State | undefined;
	for (const { state } of phases) {
		for (const key of ["uid", "generation"] as const) {
			if (state !== undefined && state[key] !== before?.[key]) {
				if (state[key] === "" || seen.has(state[key])) {
					throw new Violation(`${key} ${state[key]} is used again at version ${state.version}`);
				}
				seen.add(state[key]);
			}
		}
		before = state;
	}
}

function isLike(state: State, expected: NewState): boolean {
	const { genre, finalizers, mark, status } = state;
	return (
		genre === expected.genre &&
		finalizers === expected.finalizers &&
		(expected.mark === "any" ? mark !== undefined : mark === expected.mark) &&
		isEqual(status, expected.status)
	);
}

function isEqual(a: unknown, b: unknown): boolean {
	return canonical(a) === canonical(b);
}

/** JSON with the keys in order. */
function canonical(value: unknown): string {
	return JSON.stringify(value, (_key, part: unknown) =>
		typeof part === "object" && part !== null
			? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
			: part,
	);
}

function describe({ name, call, outcome, made, returned }: Operation): string {
	return `${name} [${made}, ${returned}] ${JSON.stringify(call)}, returned ${JSON.stringify(outcome)}`;
}
