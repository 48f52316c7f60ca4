import type {
	OutgoingReference,
	Shadow,
	Task,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Runtime } from "@plinth/runtime";
import { nameOfRecord } from "../shadow/recorded-reference.ts";
import { nameOfTask } from "../shadow/recorded-references.ts";

/** The items, starting at a random one if they exceed one batch, so that none is always the last. */
export function rotated<T>(
	items: readonly T[],
	{ random }: Pick<Runtime, "random">,
	batchSize: number,
): readonly T[] {
	const at = items.length > batchSize ? Math.floor(random.next() * items.length) : 0;
	return [...items.slice(at), ...items.slice(0, at)];
}

/**
 * The shadow with its references and tasks in the order of a previous one. The order in which they were
 * derived is irrelevant, and must not count as a change that causes another pass.
 */
export function inOrderOf(before: Shadow | undefined, shadow: Shadow): Shadow {
	if (before === undefined) {
		return shadow;
	}
	const references = new Map(before.outgoing.map((each, at) => [nameOfRecord(each), at]));
	const tasks = new Map(before.tasks.map((each, at) => [nameOfTask(each), at]));
	const end = Number.MAX_SAFE_INTEGER;
	const locationOf = (each: OutgoingReference) => references.get(nameOfRecord(each)) ?? end;
	const placeOfTask = (each: Task) => tasks.get(nameOfTask(each)) ?? end;
	return {
		...shadow,
		outgoing: shadow.outgoing.toSorted((a, b) => locationOf(a) - locationOf(b)),
		tasks: shadow.tasks.toSorted((a, b) => placeOfTask(a) - placeOfTask(b)),
	};
}
