import { isGoneBy } from "./check-deletions.ts";
import { type Event, type Key, type Seen, sightOf, type Write } from "./history.ts";
import { type Lives, mayBeGoing } from "./lives.ts";
import { rules } from "./rules.ts";

/** What was seen in resources that nobody wrote, and what was cleared that no rule explains. */
export function contentProblems(lives: Lives): readonly string[] {
	return [...lives.events].flatMap(([key, events]) => {
		const problems: string[] = [];
		/** The notes that it may have. */
		let notes = new Set<string>();
		for (const event of events) {
			notes = notesAfter(event, notes);
			const { seen } = sightOf(event) ?? {};
			if (seen !== undefined) {
				problems.push(...problemsOfSight(lives, key, seen, event.to, notes));
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

function problemsOfSight(
	lives: Lives,
	key: Key,
	seen: Seen,
	by: number,
	notes: ReadonlySet<string>,
): readonly string[] {
	const write = lives.writes.get(seen.note);
	if (write?.key !== key) {
		return [`${key} has the note ${seen.note}, which nobody wrote`];
	}
	const problems = notes.has(seen.note)
		? []
		: [`${key} has the note ${seen.note}, and ${[...notes].join(" or ")} was written since`];
	return [
		...problems,
		...referenceProblems(lives, write, seen, by),
		...ownerProblems(lives, write, seen, by),
	].map((problem) => (problem.startsWith(key) ? problem : `${key}: ${problem}`));
}

function referenceProblems(
	lives: Lives,
	{ from, content }: Write,
	seen: Seen,
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
		const targets = lives.ofKey.get(had) ?? [];
		const isUnset = rules[field] === "UNSET" && targets.some((each) => mayBeGoing(each, from, by));
		return isUnset ? [] : [`${field}, to ${had}, was cleared without reason`];
	});
}

function ownerProblems(
	lives: Lives,
	{ content }: Write,
	seen: Seen,
	by: number,
): readonly string[] {
	const lost = content.owners.filter((uid) => !seen.owners.includes(uid));
	const problems = lost
		.filter((uid) => !isGoneBy(lives.ofUid.get(uid), by))
		.map((uid) => `its owner ${uid} was taken away without reason`);
	if (seen.owners.some((uid) => !content.owners.includes(uid))) {
		problems.push(`it has owners that nobody wrote: ${seen.owners.join(", ")}`);
	}
	if (lost.length > 0 && seen.owners.length === 0 && !seen.marked) {
		problems.push("its last owner was taken away, and it lives");
	}
	return problems;
}
