import { equals } from "@bufbuild/protobuf";
import { type Resource, StatusSchema } from "@plinth/proto";

/**
 * A change of a cache. The resources are shared and must not be modified. An update may be to another
 * incarnation, with another uid, if the deletion in between was not observed.
 */
export type Change =
	| { readonly kind: "created"; readonly current: Resource }
	| { readonly kind: "updated"; readonly previous: Resource; readonly current: Resource }
	| { readonly kind: "deleted"; readonly previous: Resource };

/** Decides whether a change enqueues a request. The cache applies all changes in any case. */
export type ChangePredicate = (change: Change) => boolean;

/** Every change. */
export const anyChange: ChangePredicate = () => true;

/**
 * Matches creations, deletions and all writes except WriteStatus, including the mark for deletion and
 * the removal of finalizers.
 */
export const contentChanged: ChangePredicate = updated(
	(previous, current) =>
		previous.generation !== current.generation || previous.id?.uid !== current.id?.uid,
);

/** Matches creations, deletions and changes of metadata. */
export const metadataChanged: ChangePredicate = updated(
	(previous, current) => !sameStrings(previous.metadata, current.metadata),
);

/** Matches creations, deletions and changes of the status. */
export const statusChanged: ChangePredicate = updated(
	(previous, current) => previous.version !== current.version && !sameStatus(previous, current),
);

/** Matches changes that any of the predicates matches. */
export function anyOf(...predicates: readonly ChangePredicate[]): ChangePredicate {
	return (change) => predicates.some((predicate) => predicate(change));
}

/** Matches changes that all of the predicates match. */
export function allOf(...predicates: readonly ChangePredicate[]): ChangePredicate {
	return (change) => predicates.every((predicate) => predicate(change));
}

/** Matches creations, deletions, and updates for which `differs` returns true. */
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
