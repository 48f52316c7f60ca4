import { create } from "@bufbuild/protobuf";
import { OnDelete } from "@plinth/proto/gen/plinth/schema/v1/annotations_pb.js";
import {
	type ListMissingResponse,
	ListMissingResponseSchema,
	type MissingReference,
	MissingReferenceSchema,
} from "@plinth/proto/gen/plinth/schema/v1/deployment_service_pb.js";
import type {
	MetaOwner,
	OutgoingReference,
	Shadow,
} from "@plinth/proto/gen/plinth/schema/v1/shadow_pb.js";
import type { Caller } from "@plinth/resource";
import type { ConstraintContext } from "../node/constraint-context.ts";
import { nameOfKey } from "../shadow/resource-key.ts";
import { isLostIn, isMissingIn, type TargetPlace } from "./target-place.ts";

/** Which page of the references without a target is wanted. */
export interface MissingPage {
	/** The end of the page before; empty for the first page. */
	readonly after: string;
	/** After how many references the page ends. All references of a resource are on one page. */
	readonly limit: number;
	/** The caller, who is told about resources that it may read; all if it is absent. */
	readonly caller: Caller | undefined;
	readonly signal: AbortSignal;
}

/** A resource with references without a target. */
interface Holder {
	/** The name of its shadow, by which pages are ordered. */
	readonly name: string;
	readonly shadow: Shadow;
	readonly references: readonly OutgoingReference[];
	/** Its owners that a restore has lost. */
	readonly owners: readonly MetaOwner[];
}

/** How many shadows are visited, or resources read, between two iterations of the event loop. */
const perTurn = { visited: 1_000, read: 50 } as const;

/**
 * One page of the references that have no target in the place. It visits all shadows, and lets others run in between.
 *
 * @throws the reason of the signal.
 */
export async function listMissing(
	context: ConstraintContext,
	place: TargetPlace,
	page: MissingPage,
): Promise<ListMissingResponse> {
	const { backend, runtime } = context;
	const { holders, total } = await holdersAfter(context, place, page);
	const references: MissingReference[] = [];
	let hidden = 0;
	let taken = 0;
	for (const [at, holder] of holders.entries()) {
		const { shadow } = holder;
		const resource = shadow.resource && (await backend.lookup(nameOfKey(shadow.resource)));
		if (resource?.id?.uid === shadow.uid) {
			if (page.caller?.mayRead(resource) === false) {
				hidden += missingOf(holder);
			} else {
				references.push(...holder.references.map((each) => described(shadow, each)));
				references.push(...holder.owners.map((each) => describedOwner(shadow, each)));
			}
			taken += missingOf(holder);
		}
		if (taken >= page.limit && at + 1 < holders.length) {
			return responseOf({ references, hidden, total, nextPageToken: holder.name });
		}
		if (at % perTurn.read === perTurn.read - 1) {
			await runtime.scheduler.turn();
			page.signal.throwIfAborted();
		}
	}
	// One holder more than a page can need was looked for: without it, there are no more.
	const last = holders.length > page.limit ? (holders.at(-1)?.name ?? "") : "";
	return responseOf({ references, hidden, total, nextPageToken: last });
}

function responseOf(page: {
	readonly references: MissingReference[];
	readonly hidden: number;
	readonly total: number;
	readonly nextPageToken: string;
}): ListMissingResponse {
	const { hidden, total, ...rest } = page;
	return create(ListMissingResponseSchema, {
		...rest,
		hidden: BigInt(hidden),
		total: BigInt(total),
	});
}

/** The holders of the page, at most one more than it can need, and the number of references in all. */
async function holdersAfter(
	context: ConstraintContext,
	place: TargetPlace,
	{ after, limit, signal }: MissingPage,
): Promise<{ readonly holders: readonly Holder[]; readonly total: number }> {
	let first: Holder[] = [];
	/** Once there are enough, those after this one are on no page that is wanted. */
	let last: string | undefined;
	let total = 0;
	let visited = 0;
	for (const { name, shadow } of context.index.all()) {
		const references = shadow.outgoing.filter((each) => isMissingIn(context, each, place));
		const owners = shadow.metaOwners.filter((each) => isLostIn(context, each, place));
		const missing = missingOf({ references, owners });
		if (missing > 0) {
			total += missing;
			if (name > after && (last === undefined || name < last)) {
				first.push({ name, shadow, references, owners });
			}
			if (first.length > 2 * limit + 2) {
				first = inOrder(first).slice(0, limit + 1);
				last = first.at(-1)?.name;
			}
		}
		visited += 1;
		if (visited % perTurn.visited === 0) {
			await context.runtime.scheduler.turn();
			signal.throwIfAborted();
		}
	}
	return { holders: inOrder(first).slice(0, limit + 1), total };
}

function inOrder(holders: readonly Holder[]): Holder[] {
	return holders.toSorted((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
}

function missingOf({ references, owners }: Pick<Holder, "references" | "owners">): number {
	return references.length + owners.length;
}

function describedOwner(shadow: Shadow, owner: MetaOwner): MissingReference {
	const { missing, ownerUid } = owner;
	const outlives =
		owner.unsetOnDelete || shadow.metaOwners.some((each) => each.missing === undefined);
	return create(MissingReferenceSchema, {
		...(shadow.resource && { holder: shadow.resource }),
		holderUid: shadow.uid,
		...{ path: "owner_references", isOwner: true, targetUid: ownerUid },
		...{ rule: outlives ? OnDelete.UNSET : OnDelete.CASCADE, isKept: missing?.isKept ?? false },
		...(owner.owner && { target: owner.owner }),
		...(missing?.since && { since: missing.since }),
	});
}

function described(shadow: Shadow, reference: OutgoingReference): MissingReference {
	const { path, target, rule, missing } = reference;
	return create(MissingReferenceSchema, {
		...(shadow.resource && { holder: shadow.resource }),
		holderUid: shadow.uid,
		...{ path, rule, isKept: missing?.isKept ?? false, targetUid: missing?.uid ?? "" },
		wrongType: missing?.wrongType ?? "",
		...(target && { target }),
		...(missing?.since && { since: missing.since }),
	});
}
