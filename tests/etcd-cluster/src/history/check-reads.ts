import type { History, Operation } from "./history.ts";
import { type Phase, RegisterPhases } from "./register-phases.ts";
import type { StorageRecord } from "./storage-record.ts";

/** Something that a server has let a client know of a register. */
interface Told {
	readonly what: string;
	readonly startMs: number;
	readonly endMs: number;
	/** Whether it must be no older than what was told before it began. */
	readonly isRead: boolean;
	readonly version: string | "absent";
}

/**
 * What is wrong with eventual reads: that a server answered one with what was there before something
 * that it had told earlier in the same life, be it in an answer or in an event of a watch.
 */
export function monotonicityProblems(history: History, record: StorageRecord): readonly string[] {
	const phases = new RegisterPhases(record.registers);
	const told = Map.groupBy(everythingTold(history), ({ place }) => place);
	return [...told].flatMap(([place, each]) => {
		const register = each[0]?.register ?? "";
		return goingBack(
			phases.of(register),
			each.map((one) => one.told),
		).map((why) => `${place}: ${why}`);
	});
}

function* everythingTold({ operations, sessions }: History) {
	const placeOf = (life: number, register: string) => `life ${life}, ${register}`;
	for (const operation of operations) {
		const { life, register } = operation;
		const told = toldBy(operation);
		if (told !== undefined) {
			yield { place: placeOf(life, register), register, told };
		}
	}
	for (const { life, events } of sessions) {
		for (const event of events) {
			// An event within a snapshot, or of a deletion, is known by other means.
			if (event.kind === "upsert") {
				const { register, stored, atMs } = event;
				const told: Told = {
					what: "event",
					startMs: atMs,
					endMs: atMs,
					isRead: false,
					version: stored.version,
				};
				yield { place: placeOf(life, register), register, told };
			}
		}
	}
}

function toldBy({ call, outcome, strong, startMs, endMs }: Operation): Told | undefined {
	const told = {
		what: strong ? "strong" : "eventual",
		startMs,
		endMs,
		isRead: call.kind === "read",
	};
	switch (outcome.kind) {
		case "value":
		case "deleted":
			return { ...told, version: outcome.version };
		case "absent":
			return { ...told, version: "absent" };
		default:
			return undefined;
	}
}

/**
 * Places everything by the time at which it began, behind all that had ended by then; what was absent
 * goes to the first place where that is so, which is never worse for what follows.
 */
function goingBack(phases: readonly Phase[], told: readonly Told[]): string[] {
	const problems: string[] = [];
	const byStart = told.toSorted((a, b) => a.startMs - b.startMs);
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
