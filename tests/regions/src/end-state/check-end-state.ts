import type { EndState, ObservedShadow, StoredResource } from "./end-state.ts";

/** Inconsistencies and unfinished work after the end of the load. */
export function endStateProblems({ resources, shadows }: EndState): readonly string[] {
	const byKey = new Map(resources.map((kept) => [kept.key, kept]));
	const byUid = new Map(resources.map((kept) => [kept.seen.uid, kept]));
	const shadowOf = new Map(shadows.map((shadow) => [shadow.key, shadow]));
	return [
		...shadows.flatMap((shadow) => shadowProblems(shadow, byKey.get(shadow.key))),
		...resources.flatMap((kept) => [
			...(kept.seen.marked ? [`${kept.key} is still being deleted`] : []),
			...referenceProblems(kept, byKey, shadowOf),
			...ownerProblems(kept, byUid, shadowOf),
		]),
	];
}

function shadowProblems(
	{ key, uid, lifecycle, sources, tasks }: ObservedShadow,
	kept: StoredResource | undefined,
): readonly string[] {
	const problems: string[] = [];
	if (kept?.seen.uid !== uid) {
		problems.push(`${key} (${uid}) does not exist, and has a shadow`);
	}
	if (lifecycle !== "LIFECYCLE_ACTIVE") {
		problems.push(`${key} is still ${lifecycle}`);
	}
	for (const { deployment, tentative } of sources) {
		if (tentative) {
			problems.push(`${key} has ${deployment} as a tentative source`);
		}
	}
	return tasks.length === 0 ? problems : [...problems, `${key} has tasks: ${tasks.join(", ")}`];
}

function referenceProblems(
	{ key, deployment, seen }: StoredResource,
	byKey: ReadonlyMap<string, StoredResource>,
	shadowOf: ReadonlyMap<string, ObservedShadow>,
): readonly string[] {
	const outgoing = shadowOf.get(key)?.outgoing ?? [];
	const stale = outgoing.filter(({ target }) => !Object.values(seen.references).includes(target));
	const problems = stale.map(
		({ target }) => `the shadow of ${key} references ${target}; it does not`,
	);
	for (const [field, target] of Object.entries(seen.references)) {
		const found = byKey.get(target);
		if (found === undefined) {
			problems.push(`${key} references ${target} with ${field}, which does not exist`);
			continue;
		}
		const recorded = outgoing.filter((each) => each.target === target);
		if (recorded.length === 0) {
			problems.push(`the shadow of ${key} does not know ${target}, which it references`);
		}
		if (recorded.some(({ targetUid }) => targetUid !== found.seen.uid)) {
			problems.push(`${key} references another incarnation of ${target} with ${field}`);
		}
		const sources = shadowOf.get(target)?.sources ?? [];
		if (!sources.some((source) => source.deployment === deployment)) {
			problems.push(`${key} references ${target}, whose shadow does not name ${deployment}`);
		}
	}
	return problems;
}

function ownerProblems(
	{ key, deployment, seen }: StoredResource,
	byUid: ReadonlyMap<string, StoredResource>,
	shadowOf: ReadonlyMap<string, ObservedShadow>,
): readonly string[] {
	const known = shadowOf.get(key)?.owners ?? [];
	return seen.owners.flatMap((uid) => {
		const owner = byUid.get(uid);
		if (owner === undefined) {
			return [`${key} has the owner ${uid}, which does not exist`];
		}
		const isRecorded = shadowOf.get(owner.key)?.ownees.includes(deployment);
		return [
			...(known.includes(uid) ? [] : [`the shadow of ${key} does not know its owner ${owner.key}`]),
			...(isRecorded
				? []
				: [`${owner.key} owns ${key}, and its shadow does not name ${deployment}`]),
		];
	});
}
