import { type Deletion, type Key, type Kind, keyOf, sightOf, type Write } from "./history.ts";
import type { Lives } from "./lives.ts";
import { rules } from "./rules.ts";

/** The services of the example. */
const services = ["meta", "iam", "devices"];

/** Refusals that do not say why, or say what is not true. */
export function refusalProblems(lives: Lives, regions: readonly string[]): readonly string[] {
	return [...lives.events.values()].flat().flatMap((event) => {
		if (event.call === "look" || event.outcome.kind !== "refused") {
			return [];
		}
		const { code, message } = event.outcome;
		const problem =
			event.call === "delete"
				? deletionProblem(lives, regions, event, message)
				: writeProblem(lives, event, code, message);
		return problem === undefined ? [] : [`${event.key}: ${problem}: ${code}: ${message}`];
	});
}

function deletionProblem(
	lives: Lives,
	regions: readonly string[],
	{ key, from, to }: Deletion,
	message: string,
): string | undefined {
	const [, reasons] = /can't be deleted: (.+)$/s.exec(message) ?? [];
	if (reasons === undefined) {
		return "a deletion was refused, and not for its references";
	}
	const blockers = namedIn(reasons);
	const silent = [...reasons.matchAll(/(\w+) in ([\w-]+) may reference it and can't be asked/g)];
	if (blockers.length + silent.length === 0 || /referenced by resources of/.test(reasons)) {
		return "a refusal does not name its blockers";
	}
	const strange = silent.find(
		([, service = "", region = ""]) => !services.includes(service) || !regions.includes(region),
	);
	if (strange !== undefined) {
		return `there is no ${strange[1]} in ${strange[2]}`;
	}
	const innocent = blockers.find((each) => !mayBlock(lives, each, key, from, to));
	return innocent && `${innocent} does not block it`;
}

/** The resources that are named in a message of a server. */
function namedIn(message: string): readonly Key[] {
	const named = message.matchAll(
		/(?:iam|devices)\.(Project|AccessKey|Rack|Device) default\/default\/([\w-]+) \(([\w-]+)\)/g,
	);
	return [...named].map(([, kind = "", name = "", region = ""]) =>
		keyOf({ kind: kind as Kind, name, region }),
	);
}

/** Whether the referrer may have blocked the target at some time between the two. */
function mayBlock(
	{ events, writes }: Lives,
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
			const sight = sightOf(event);
			if (sight === undefined || event.from < write.to || event.to > from) {
				return false;
			}
			const shown = writes.get(sight.seen?.note ?? "");
			return shown === undefined || !blocks(shown);
		});
		return write.from <= to && !isOver;
	});
}

function writeProblem(
	lives: Lives,
	write: Write,
	code: string,
	message: string,
): string | undefined {
	if (code === "aborted") {
		return undefined;
	}
	if (code === "invalid_argument") {
		// A resource that is being deleted can't be changed.
		const itself = lives.ofKey.get(write.key) ?? [];
		const mayBeMarked = itself.some(
			({ markedBy, aliveFrom, absentBy }) =>
				markedBy < Infinity && aliveFrom <= write.to && absentBy >= write.from,
		);
		return mayBeMarked ? undefined : "a write was refused though nothing is wrong with it";
	}
	// The reason comes last; before it, every field of the call that failed is named.
	const target = namedIn(message).at(-1);
	if (target === undefined || !Object.values(write.content.references).includes(target)) {
		return "a refused write does not name a target of its own";
	}
	const targets = lives.ofKey.get(target) ?? [];
	const wasThere = targets.some(
		({ uid, bornBy, aliveFrom }) => uid !== "" && bornBy <= write.from && aliveFrom >= write.to,
	);
	return wasThere ? `${target} was there all the time` : undefined;
}
