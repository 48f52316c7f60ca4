import { Code, ConnectError } from "@connectrpc/connect";
import type { ReconcileContext } from "@plinth/controller";
import type { ID, Resource } from "@plinth/proto";
import { gvkKey, isMarkedForDeletion, type ResourceType, type TenancyLike } from "@plinth/resource";
import { forEachConcurrently } from "./for-each-concurrently.ts";
import { strongly } from "./strong-reads.ts";

/** The number of resources per page, and of concurrent deletions. */
const pageSize = 500;
const concurrentDeletions = 16;

/** The result of a deletion of contents. */
export interface DeletedContents {
	/**
	 * The keys of the types of which each resource is deleted or marked. Nothing of these types is left to delete in
	 * this incarnation of the unit.
	 */
	readonly complete: ReadonlySet<string>;
	/** The first failure of a deletion. */
	readonly failure?: unknown;
}

/**
 * Deletes all resources of the types in a partition or namespace that is marked for deletion: one list for each
 * type, and one read of the unit for each page of resources.
 *
 * The unit may have been deleted meanwhile, and its name reused by another tenant. Therefore resources are listed
 * before the unit is read, both strongly: if the unit with this uid still exists, it existed when they were
 * listed, and they belong to it. Each resource is deleted by its uid, so that a later resource of the same name
 * is not affected.
 */
export async function deleteContents(
	context: ReconcileContext,
	types: readonly ResourceType[],
	tenancy: TenancyLike,
	unit: ID,
): Promise<DeletedContents> {
	const failed = new Set<string>();
	let failure: unknown;
	for await (const listed of inBatches(context, types, tenancy)) {
		if (!(await isStillMarked(context, unit))) {
			return { complete: new Set(), failure };
		}
		await forEachConcurrently(listed, concurrentDeletions, async ({ id }) => {
			try {
				await context.client.delete(id === undefined ? {} : { id });
			} catch (error) {
				failed.add(id?.type === undefined ? "" : gvkKey(id.type));
				failure ??= error;
			}
		});
	}
	const complete = types.map(({ key }) => key).filter((key) => !failed.has(key));
	return { complete: new Set(complete), failure };
}

/** The unmarked resources of all types, about a page of them at a time: many types may have few resources each. */
async function* inBatches(
	context: ReconcileContext,
	types: readonly ResourceType[],
	tenancy: TenancyLike,
): AsyncGenerator<readonly Resource[]> {
	let batch: Resource[] = [];
	for (const type of types) {
		for await (const page of pages(context, type, tenancy)) {
			batch.push(...page.filter((resource) => !isMarkedForDeletion(resource)));
			if (batch.length >= pageSize) {
				yield batch;
				batch = [];
			}
		}
	}
	// Also if it is empty: that nothing was found counts only if the unit still exists.
	yield batch;
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
