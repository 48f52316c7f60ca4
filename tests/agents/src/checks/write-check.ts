import { type Change, type History, noteOf } from "./history.ts";

/** How often an agent sends a call, at most. */
const attempts = 3;

/** What a client knows of a write when its call has ended. */
export type WriteOutcome =
	/** It was executed, and stored under this version; of a deletion, the version is not known. */
	| { readonly kind: "acknowledged"; readonly version: string | undefined }
	/** It was refused, or the error says that it was not executed. */
	| { readonly kind: "not-executed"; readonly error: string }
	/** It may have been executed. */
	| { readonly kind: "unknown" };

/** A write of a client. Each writes a note that no other one has. */
export interface Write {
	readonly method: "write" | "create" | "delete";
	readonly key: string;
	readonly note: string;
	outcome: WriteOutcome | undefined;
}

/**
 * What is wrong with writes, as the history shows: one that was acknowledged must have been executed once, one that was
 * refused never, and any other one at most once.
 */
export function judgeWrites(writes: readonly Write[], history: History): readonly string[] {
	const changes = history.entries.flatMap(({ changes: made }) => made ?? []);
	const byNote = Map.groupBy(
		changes.filter(({ kind }) => kind === "upsert"),
		({ resource }) => noteOf(resource),
	);
	return [
		...writes
			.filter(({ method }) => method !== "delete")
			.flatMap((write) => judgeWrite(write, byNote.get(write.note) ?? [])),
		...judgeDeletions(writes, changes),
	];
}

function judgeWrite({ method, key, note, outcome }: Write, made: readonly Change[]) {
	const versions = made.map(({ resource }) => resource.version);
	const text = `the ${method} of ${key} with ${note}`;
	// What was created and then deleted may be created again by an agent that repeats the call.
	const isOften = versions.length > (method === "write" ? 1 : attempts);
	switch (outcome?.kind) {
		case "acknowledged": {
			const isStored = versions.includes(outcome.version ?? "");
			return isStored && !isOften
				? []
				: [`${text} was acknowledged as ${outcome.version}, and executed as ${versions}`];
		}
		case "not-executed":
			return versions.length === 0
				? []
				: [`${text} has failed (${outcome.error}), and was executed as ${versions}`];
		default:
			return isOften ? [`${text} was executed as ${versions}`] : [];
	}
}

/** Of each name, clients delete no more often than they have called Delete. */
function judgeDeletions(writes: readonly Write[], changes: readonly Change[]): readonly string[] {
	const called = Map.groupBy(
		writes.filter(({ method, outcome }) => method === "delete" && outcome?.kind !== "not-executed"),
		({ key }) => key,
	);
	const made = Map.groupBy(
		changes.filter(({ kind }) => kind === "delete"),
		({ key }) => key,
	);
	return [...called.keys()].flatMap((key) => {
		const [calls, times] = [called.get(key)?.length ?? 0, made.get(key)?.length ?? 0];
		return times > calls ? [`${key} was deleted ${times} times by ${calls} calls`] : [];
	});
}
