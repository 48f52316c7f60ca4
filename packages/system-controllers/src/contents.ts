import { Code, ConnectError } from "@connectrpc/connect";
import type { ReconcileContext } from "@plinth/controller";
import type { ID, Resource } from "@plinth/proto";
import { isMarkedForDeletion, type ResourceType, type TenancyLike } from "@plinth/resource";
import { each } from "./each.ts";

/** How many resources are listed, and deleted, at once. */
const pageSize = 500;
const deletionsAtOnce = 16;

/** Reads must not miss what was written just before the unit of tenancy was marked. */
const strongly = { headers: { "x-plinth-consistency-mode": "consistent" } };

/**
 * Deletes all resources of a type in a unit of tenancy that is marked for deletion.
 *
 * The unit that the caller knows may be gone meanwhile, and its name taken by another tenant. So the first
 * page is read, then the unit, both strongly: if the unit is still there, with its uid, it was there when
 * the list was taken, and everything in the list was its own. Each resource is deleted by its uid,
 * which no later resource of the name has.
 *
 * @returns why the first resource that could not be deleted could not.
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
			await each(unmarked, deletionsAtOnce, async ({ id }) => {
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

/** Whether that incarnation of the unit is stored, and marked for deletion. */
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

/** The pages of one snapshot. */
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
