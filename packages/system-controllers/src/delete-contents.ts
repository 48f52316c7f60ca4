import { Code, ConnectError } from "@connectrpc/connect";
import type { ReconcileContext } from "@plinth/controller";
import type { ID, Resource } from "@plinth/proto";
import { isMarkedForDeletion, type ResourceType, type TenancyLike } from "@plinth/resource";
import { forEachConcurrently } from "./for-each-concurrently.ts";

/** The number of resources per page, and of concurrent deletions. */
const pageSize = 500;
const concurrentDeletions = 16;

/** Reads must include resources that were written just before the unit was marked. */
const strongly = { headers: { "x-plinth-consistency-mode": "consistent" } };

/**
 * Deletes all resources of a type in a partition or namespace that is marked for deletion.
 *
 * The unit may have been deleted meanwhile, and its name reused by another tenant. Therefore the first page is
 * read before the unit, both strongly: if the unit with this uid still exists, it existed when the page was
 * read, and the listed resources belong to it. Each resource is deleted by its uid, so that a later
 * resource of the same name is not affected.
 *
 * @returns the first failure of a deletion, if any.
 */
export async function deleteAll(
	context: ReconcileContext,
	type: ResourceType,
	tenancy: TenancyLike,
	unit: ID,
): Promise<unknown> {
	let failure: unknown;
	let isConfirmed = false;
	for await (const page of pages(context, type, tenancy)) {
		isConfirmed ||= await isStillMarked(context, unit);
		if (!isConfirmed) {
			return undefined;
		}
		const unmarked = page.filter((resource) => !isMarkedForDeletion(resource));
		try {
			await forEachConcurrently(unmarked, concurrentDeletions, async ({ id }) => {
				if (id !== undefined) {
					await context.client.delete({ id });
				}
			});
		} catch (error) {
			failure ??= error;
		}
	}
	return failure;
}

/** Whether this incarnation of the unit exists and is marked for deletion. */
async function isStillMarked({ client }: ReconcileContext, unit: ID): Promise<boolean> {
	try {
		const { resource } = await client.read({ id: unit }, strongly);
		return resource !== undefined && isMarkedForDeletion(resource);
	} catch (error) {
		if (error instanceof ConnectError && error.code === Code.NotFound) {
			return false;
		}
		throw error;
	}
}

/** The pages of one snapshot, read strongly. */
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
