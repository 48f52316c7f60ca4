import type { History, Operation } from "./history.ts";
import { type Phase, RegisterPhases } from "./register-phases.ts";
import type { StorageRecord } from "./storage-record.ts";

/** An observation of a register by a client: a response or an event. */
interface Observation {
	readonly what: string;
	readonly startMs: number;
	readonly endMs: number;
	/** Whether it must be no older than what was observed before it began. */
	readonly isRead: boolean;
	readonly version: string | "absent";
}

/**
 * The problems of eventual reads: responses of a server that are older than an earlier response or event of
 * the same life.
 */
export function monotonicityProblems(history: History, record: StorageRecord): readonly string[] {
	const phases = new RegisterPhases(record.registers);
	const observations = Map.groupBy(allObservations(history), ({ place }) => place);
	return [...observations].flatMap(([place, each]) => {
		const register = each[0]?.register ?? "";
		return goingBack(
			phases.of(register),
			each.map((one) => one.observation),
		).map((why) => `${place}: ${why}`);
	});
}

function* allObservations({ operations, sessions }: History) {
	const placeOf = (life: number, register: string) => `life ${life}, ${register}`;
	for (const operation of operations) {
		const { life, register } = operation;
		const observation = observationOf(operation);
		if (observation !== undefined) {
			yield { place: placeOf(life, register), register, observation };
		}
	}
	for (const { life, events } of sessions) {
		for (const event of events) {
			// An event within a snapshot, or of a deletion, is known by other means.
			if (event.kind === "upsert") {
				const { register, stored, atMs } = event;
				const observation: Observation = {
					what: "event",
					startMs: atMs,
					endMs: atMs,
					isRead: false,
					version: stored.version,
				};
				yield { place: placeOf(life, register), register, observation };
			}
		}
	}
}

function observationOf({
	call,
	outcome,
	strong,
	startMs,
	endMs,
}: Operation): Observation | undefined {
	const common = {
		what: strong ? "strong" : "eventual",
		startMs,
		endMs,
		isRead: call.kind === "read",
	};
	switch (outcome.kind) {
		case "value":
		case "deleted":
			return { ...common, version: outcome.version };
		case "absent":
			return { ...common, version: "absent" };
		default:
			return undefined;
	}
}

/**
 * Assigns each observation to a phase of the register, in order of start, not before those that had ended by
 * then; "absent" gets the first possible phase, which is never worse for later observations.
 */
function goingBack(phases: readonly Phase[], observations: readonly Observation[]): string[] {
	const problems: string[] = [];
	const byStart = observations.toSorted((a, b) => a.startMs - b.startMs);
	const ended: { readonly endMs: number; readonly place: number }[] = [];
	for (const { what, version, isRead, startMs, endMs } of byStart) {
		const known = ended.filter((each) => each.endMs < startMs).map(({ place }) => place);
		const floor = isRead ? Math.max(0, ...known) : 0;
		const place = phases.findIndex((phase, index) =>
			version === "absent"
				? index >= floor && phase.text === undefined
				: phase.revision === Number(version),
		);
		if (place < floor) {
			problems.push(`${what} ${version} at ${startMs} after revision ${phases[floor]?.revision}`);
			continue;
		}
		ended.push({ endMs, place });
	}
	return problems;
}
