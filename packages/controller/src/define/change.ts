import { equals } from "@bufbuild/protobuf";
import { type Resource, StatusSchema } from "@plinth/proto";

/**
 * How a cache has changed. The resources are shared and must not be changed. An update may be to
 * another incarnation, with another uid, where the deletion in between was not seen.
 */
export type Change =
	| { readonly kind: "created"; readonly current: Resource }
	| { readonly kind: "updated"; readonly previous: Resource; readonly current: Resource }
	| { readonly kind: "deleted"; readonly previous: Resource };

/** Decides whether a change queues anything. The cache sees all changes, whatever is decided. */
export type ChangePredicate = (change: Change) => boolean;

/** Every change. */
export const anyChange: ChangePredicate = () => true;

/**
 * What is created, deleted, or written other than by WriteStatus: marking for deletion and the
 * removal of finalizers included.
 */
export const contentChanged: ChangePredicate = updated(
	(previous, current) =>
		previous.generation !== current.generation || previous.id?.uid !== current.id?.uid,
);

/** What is created, deleted, or has other metadata than before. */
export const metadataChanged: ChangePredicate = updated(
	(previous, current) => !sameStrings(previous.metadata, current.metadata),
);

/** What is created, deleted, or has had a status written. */
export const statusChanged: ChangePredicate = updated(
	(previous, current) => previous.version !== current.version && !sameStatus(previous, current),
);

/** What any of the predicates says. */
export function anyOf(...predicates: readonly ChangePredicate[]): ChangePredicate {
	return (change) => predicates.some((predicate) => predicate(change));
}

/** What all of the predicates say. */
export function allOf(...predicates: readonly ChangePredicate[]): ChangePredicate {
	return (change) => predicates.every((predicate) => predicate(change));
}

/** A predicate that holds for what is created or deleted, and for updates that `differs` picks. */
export function updated(
	differs: (previous: Resource, current: Resource) => boolean,
): ChangePredicate {
	return (change) => change.kind !== "updated" || differs(change.previous, change.current);
}

function sameStrings(
	a: Readonly<Record<string, string>>,
	b: Readonly<Record<string, string>>,
): boolean {
	const keys = Object.keys(a);
	return (
		keys.length === Object.keys(b).length &&
		keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key])
	);
}

function sameStatus(a: Resource, b: Resource): boolean {
	const keys = Object.keys(a.status);
	return (
		keys.length === Object.keys(b.status).length &&
		keys.every((key) => {
			const [before, after] = [a.status[key], b.status[key]];
			return (
				before === after ||
				(before !== undefined && after !== undefined && equals(StatusSchema, before, after))
			);
		})
	);
}
