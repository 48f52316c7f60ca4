/** The finalizer of a resource that others may reference. */
export const referencesFinalizer = "schema.plinth.dev/references";

const contentsFinalizer = "tenancy.plinth.dev/contents";

/** What a deletion waits for while it has a finalizer that the server removes by itself. */
const reasons: ReadonlyMap<string, string> = new Map([
	[referencesFinalizer, "the resources that reference it"],
	[contentsFinalizer, "its contents to be deleted"],
]);

/** Whether the server removes the finalizer by itself. */
export function isOfServer(finalizer: string): boolean {
	return reasons.has(finalizer);
}

/** What a deletion waits for while it has the finalizer. */
export function reasonOf(finalizer: string): string {
	return reasons.get(finalizer) ?? finalizer;
}
