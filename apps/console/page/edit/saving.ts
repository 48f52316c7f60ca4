import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { contentOf, type KnownTypes } from "@plinth/documents";
import type { WantedResource } from "@plinth/documents/yaml";
import type { Resource, ResourceService } from "@plinth/proto";
import { resourceOfDraft } from "./draft.ts";

type Resources = Pick<Client<typeof ResourceService>, "read" | "write">;

/** So often a write is repeated that lost against writes of the status alone. */
const mostAttempts = 10;

/** Reads of a server of a cluster may otherwise be behind. */
const consistent = { headers: { "x-plinth-consistency-mode": "consistent" } };

/** Somebody else has changed the resource since it was read. */
export class ConflictError extends Error {
	override readonly name = "ConflictError";
	/** The resource as it is now. */
	readonly theirs: Resource;

	constructor(theirs: Resource) {
		super("the resource was changed by somebody else");
		this.theirs = theirs;
	}
}

/**
 * Writes a draft over the resource that was edited, by compare-and-swap; without one, creates it. Writes of the status alone
 * are no conflict.
 *
 * @throws ConflictError if the content has changed meanwhile; ConnectError of the server.
 */
export async function save(
	resources: Resources,
	wanted: WantedResource,
	edited: Resource | undefined,
	types: KnownTypes,
): Promise<Resource> {
	let base = edited;
	for (let attempt = 1; ; attempt += 1) {
		try {
			const { resource } = await resources.write({ resource: resourceOfDraft(wanted, base) });
			return resource ?? resourceOfDraft(wanted, base);
		} catch (error) {
			const isConflict = ConnectError.from(error).code === Code.Aborted;
			if (!isConflict || base?.id === undefined || attempt === mostAttempts) {
				throw error;
			}
			const { resource: theirs } = await resources.read({ id: base.id }, consistent);
			if (theirs === undefined || !hasSameContent(base, theirs, types)) {
				throw theirs === undefined ? error : new ConflictError(theirs);
			}
			base = theirs;
		}
	}
}

/** Whether two versions of a resource differ in nothing that a document can say. */
export function hasSameContent(a: Resource, b: Resource, types: KnownTypes): boolean {
	return JSON.stringify(contentOf(a, types)) === JSON.stringify(contentOf(b, types));
}
