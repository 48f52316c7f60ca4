import type { ReconcileContext } from "@plinth/controller";
import type { Resource } from "@plinth/proto";
import { gvkKey, isMarkedForDeletion, type ResourceType, type TenancyLike } from "@plinth/resource";
import { each } from "./each.ts";

/** How many resources of a type are still there. */
export interface Remainder {
	readonly type: ResourceType;
	readonly count: number;
	/** Why the first that could not be deleted could not. */
	readonly failure?: unknown;
}

/** How many resources are listed, and deleted, at once. */
const pageSize = 500;
const deletionsAtOnce = 16;

/** Lists must not miss what was created just before the unit of tenancy was marked. */
const strongly = { headers: { "x-plinth-consistency-mode": "consistent" } };

/** Deletes everything of the type in the tenancy; answers what is still there, marked or on its way. */
export async function deleteAll(
	context: ReconcileContext,
	type: ResourceType,
	tenancy: TenancyLike,
): Promise<Remainder> {
	let count = 0;
	let failure: unknown;
	for await (const page of pages(context, type, tenancy)) {
		const unmarked = page.filter((resource) => !isMarkedForDeletion(resource));
		try {
			await each(unmarked, deletionsAtOnce, async ({ id }) => {
				if (id !== undefined) {
					await context.client.delete({ id });
				}
			});
		} catch (error) {
			failure ??= error;
		}
		count += page.length;
	}
	return { type, count, failure };
}

/** How many resources of the type are in the tenancy. */
export async function countAll(
	context: ReconcileContext,
	type: ResourceType,
	tenancy: TenancyLike,
): Promise<Remainder> {
	let count = 0;
	for await (const page of pages(context, type, tenancy)) {
		count += page.length;
	}
	return { type, count };
}

async function* pages(
	{ client }: ReconcileContext,
	type: ResourceType,
	tenancy: TenancyLike,
): AsyncGenerator<readonly Resource[]> {
	let pageToken = "";
	do {
		const page = await client.list({ type: type.type, tenancy, pageSize, pageToken }, strongly);
		yield page.resources;
		pageToken = page.nextPageToken;
	} while (pageToken !== "");
}

/** What is left, for people: `3 demo.v2.Artist, 1 internal.v1.Tombstone`. */
export function describeRemainders(remainders: readonly Remainder[]): string {
	return remainders.map(({ type, count }) => `${count} ${gvkKey(type.type)}`).join(", ");
}
