import { type Deletion, type Key, type Kind, keyOf, observationOf, type Write } from "./history.ts";
import type { Incarnations } from "./incarnations.ts";
import { rules } from "./rules.ts";

/** The services of the example. */
const services = ["meta", "iam", "devices"];

/** Refusals without a reason, or with a wrong one. */
export function refusalProblems(
	incarnations: Incarnations,
	regions: readonly string[],
): readonly string[] {
	return [...incarnations.events.values()].flat().flatMap((event) => {
		if (event.call === "read" || event.outcome.kind !== "refused") {
			return [];
		}
		const { code, message } = event.outcome;
		const problem =
			event.call === "delete"
				? deletionProblem(incarnations, regions, event, message)
				: writeProblem(incarnations, event, code, message);
		return problem === undefined ? [] : [`${event.key}: ${problem}: ${code}: ${message}`];
	});
}

function deletionProblem(
	incarnations: Incarnations,
	regions: readonly string[],
	{ key, from, to }: Deletion,
	message: string,
): string | undefined {
	const [, reasons] = /can't be deleted: (.+)$/s.exec(message) ?? [];
	if (reasons === undefined) {
		return "a deletion was refused for another reason than its references";
	}
	const blockers = namedIn(reasons);
	const unreachable = [
		...reasons.matchAll(/(\w+) in ([\w-]+) may reference it and can't be queried/g),
	];
	if (blockers.length + unreachable.length === 0 || /referenced by resources of/.test(reasons)) {
		return "a refusal does not name its blockers";
	}
	const unknown = unreachable.find(
		([, service = "", region = ""]) => !services.includes(service) || !regions.includes(region),
	);
	if (unknown !== undefined) {
		return `${unknown[1]} in ${unknown[2]} does not exist`;
	}
	const wrong = blockers.find((each) => !mayBlock(incarnations, each, key, from, to));
	return wrong && `${wrong} does not block it`;
}

/** The resources that a message of a server names. */
function namedIn(message: string): readonly Key[] {
	const named = message.matchAll(
		/(?:iam|devices)\.(Project|AccessKey|Rack|Device) default\/default\/([\w-]+) \(([\w-]+)\)/g,
	);
	return [...named].map(([, kind = "", name = "", region = ""]) =>
		keyOf({ kind: kind as Kind, name, region }),
	);
}

/** Whether the referrer may have blocked the target at some time in the interval. */
function mayBlock(
	{ events, writes }: Incarnations,
	referrer: Key,
	target: Key,
	from: number,
	to: number,
): boolean {
	const its = events.get(referrer) ?? [];
	const blocks = ({ content }: Write) =>
		Object.entries(content.references).some(
			([field, to]) => rules[field] === "BLOCK" && to === target,
		);
	return its.some((write) => {
		if (write.call !== "write" || write.outcome.kind === "refused" || !blocks(write)) {
			return false;
		}
		const isOver = its.some((event) => {
			const observation = observationOf(event);
			if (observation === undefined || event.from < write.to || event.to > from) {
				return false;
			}
			const shown = writes.get(observation.seen?.note ?? "");
			return shown === undefined || !blocks(shown);
		});
		return write.from <= to && !isOver;
	});
}

function writeProblem(
	incarnations: Incarnations,
	write: Write,
	code: string,
	message: string,
): string | undefined {
	if (code === "aborted") {
		return undefined;
	}
	if (code === "invalid_argument") {
		// A resource that is being deleted can't be changed.
		const itself = incarnations.ofKey.get(write.key) ?? [];
		const mayBeMarked = itself.some(
			({ markedBy, aliveFrom, absentBy }) =>
				markedBy < Infinity && aliveFrom <= write.to && absentBy >= write.from,
		);
		return mayBeMarked ? undefined : "a valid write was refused";
	}
	// The reason is at the end, after the fields of the failed call.
	const target = namedIn(message).at(-1);
	if (target === undefined || !Object.values(write.content.references).includes(target)) {
		return "a refused write does not name one of its targets";
	}
	const targets = incarnations.ofKey.get(target) ?? [];
	const existed = targets.some(
		({ uid, bornBy, aliveFrom }) => uid !== "" && bornBy <= write.from && aliveFrom >= write.to,
	);
	return existed ? `${target} existed all the time` : undefined;
}
