import { mayBeLostBy } from "./check-deletions.ts";
import {
	type Event,
	type Key,
	type ObservedResource,
	observationOf,
	type Write,
} from "./history.ts";
import { type Incarnations, mayBeInDeletion } from "./incarnations.ts";
import { rules } from "./rules.ts";

/** Observed contents that no client wrote, and cleared fields that no rule explains. */
export function contentProblems(incarnations: Incarnations): readonly string[] {
	return [...incarnations.events].flatMap(([key, events]) => {
		const problems: string[] = [];
		/** The notes that the resource may have. */
		let notes = new Set<string>();
		for (const event of events) {
			notes = notesAfter(event, notes);
			const { seen } = observationOf(event) ?? {};
			if (seen !== undefined) {
				problems.push(...observationProblems(incarnations, key, seen, event.to, notes));
			}
		}
		return problems;
	});
}

function notesAfter(event: Event, before: ReadonlySet<string>): Set<string> {
	const notes = new Set(before);
	if (event.call === "write" && event.outcome.kind !== "refused") {
		if (event.outcome.kind === "done") {
			notes.clear();
		}
		notes.add(event.content.note);
	}
	return notes;
}

function observationProblems(
	incarnations: Incarnations,
	key: Key,
	seen: ObservedResource,
	by: number,
	notes: ReadonlySet<string>,
): readonly string[] {
	const write = incarnations.writes.get(seen.note);
	if (write?.key !== key) {
		return [`${key} has the note ${seen.note}, which no client wrote`];
	}
	const problems = notes.has(seen.note)
		? []
		: [`${key} has the note ${seen.note}, and ${[...notes].join(" or ")} was written since`];
	return [
		...problems,
		...referenceProblems(incarnations, write, seen, by),
		...ownerProblems(incarnations, write, seen, by),
	].map((problem) => (problem.startsWith(key) ? problem : `${key}: ${problem}`));
}

function referenceProblems(
	incarnations: Incarnations,
	{ from, content }: Write,
	seen: ObservedResource,
	by: number,
): readonly string[] {
	const fields = new Set([...Object.keys(content.references), ...Object.keys(seen.references)]);
	return [...fields].flatMap((field) => {
		const [had, has] = [content.references[field], seen.references[field]];
		if (had === has) {
			return [];
		}
		if (has !== undefined || had === undefined) {
			return [`${field} is ${has}, and ${had ?? "nothing"} was written`];
		}
		const targets = incarnations.ofKey.get(had) ?? [];
		const isUnset =
			rules[field] === "UNSET" && targets.some((each) => mayBeInDeletion(each, from, by));
		return isUnset ? [] : [`${field}, to ${had}, was cleared without reason`];
	});
}

function ownerProblems(
	incarnations: Incarnations,
	{ content }: Write,
	seen: ObservedResource,
	by: number,
): readonly string[] {
	const lost = content.owners.filter((uid) => !seen.owners.includes(uid));
	const problems = lost
		.filter((uid) => !mayBeLostBy(incarnations.ofUid.get(uid), by))
		.map((uid) => `its owner ${uid} was removed without reason`);
	if (seen.owners.some((uid) => !content.owners.includes(uid))) {
		problems.push(`it has owners that no client wrote: ${seen.owners.join(", ")}`);
	}
	if (lost.length > 0 && seen.owners.length === 0 && !seen.marked) {
		problems.push("its last owner was removed, and it still exists");
	}
	return problems;
}
