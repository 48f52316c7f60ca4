import { create, type DescMessage, equals, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type Condition,
	ConditionSchema,
	type ID,
	type Resource,
	ResourceSchema,
	StatusSchema,
} from "@plinth/proto";
import {
	type Decoded,
	decode,
	deletionTimestampKey,
	displayName,
	finalizersKey,
	type ResourceInit,
	type ResourceType,
	resourceOf,
	sameName,
} from "@plinth/resource";
import type { ResourceClient } from "./resource-client.ts";

/** What a resource is to be. */
export interface WriteInit<Desc extends DescMessage> extends ResourceInit<Desc> {
	/** The version that is to be replaced; without it, whichever is there. */
	readonly version?: string;
}

/** What a status is to be. */
export interface StatusInit {
	readonly conditions: readonly MessageInitShape<typeof ConditionSchema>[];
	/** The generation that the status is about; without it, that of the resource given. */
	readonly observedGeneration?: string;
	/** The entry of the resource's status; without it, the controller's name. */
	readonly key?: string;
}

/** What came of a write that is made only where something differs. */
export interface WriteResult {
	/** Whether anything was written. */
	readonly changed: boolean;
	/** As it is now. */
	readonly resource: Resource;
}

/** The resource of that name, or `undefined` where there is none. */
export async function readResource<Desc extends DescMessage>(
	client: ResourceClient,
	type: ResourceType<Desc>,
	id: ID,
): Promise<Decoded<Desc> | undefined> {
	try {
		const { resource } = await client.read({ id });
		return resource && decode(type, resource);
	} catch (error) {
		if (error instanceof ConnectError && error.code === Code.NotFound) {
			return undefined;
		}
		throw error;
	}
}

/** Writes a resource, and answers it as stored. */
export async function writeResource<Desc extends DescMessage>(
	client: ResourceClient,
	type: ResourceType<Desc>,
	init: WriteInit<Desc>,
): Promise<Decoded<Desc>> {
	const resource = resourceOf(type, init);
	resource.version = init.version ?? "";
	return decode(type, answered((await client.write({ resource })).resource, init.id));
}

/**
 * Writes a resource only where it differs from `existing` in its data, in the metadata or in the
 * owner given. An existing one is replaced by compare-and-swap; what the caller doesn't give
 * (metadata, owner, owner references, finalizers, deletion mark) stays as it is.
 */
export async function writeIfDifferent<Desc extends DescMessage>(
	client: ResourceClient,
	type: ResourceType<Desc>,
	existing: Decoded<Desc> | undefined,
	init: ResourceInit<Desc>,
): Promise<WriteResult> {
	if (existing === undefined) {
		return { changed: true, resource: (await writeResource(client, type, init)).resource };
	}
	const stored = existing.resource;
	const metadata =
		init.metadata === undefined ? stored.metadata : { ...reserved(stored), ...init.metadata };
	const data = init.data ?? create(type.schema);
	if (
		sameMetadata(metadata, stored.metadata) &&
		sameOwner(init.owner, stored.owner) &&
		equals(type.schema, data, existing.data)
	) {
		return { changed: false, resource: stored };
	}
	const owner = init.owner ?? stored.owner;
	const replacement = create(ResourceSchema, {
		...resourceOf(type, { id: init.id, data, metadata, ...(owner && { owner }) }),
		version: stored.version,
		ownerReferences: stored.ownerReferences,
	});
	const { resource } = await client.write({ resource: replacement });
	return { changed: true, resource: answered(resource, init.id) };
}

/** Writes a status only where it differs from the one in `resource`. */
export async function writeStatusIfDifferent(
	client: ResourceClient,
	resource: Resource,
	key: string,
	init: StatusInit,
): Promise<WriteResult> {
	const observedGeneration = init.observedGeneration ?? resource.generation;
	const conditions = init.conditions.map((condition) => create(ConditionSchema, condition));
	const stored = Object.hasOwn(resource.status, key) ? resource.status[key] : undefined;
	if (
		stored !== undefined &&
		stored.observedGeneration === observedGeneration &&
		sameConditions(stored.conditions, conditions)
	) {
		return { changed: false, resource };
	}
	const id = resource.id;
	if (id === undefined) {
		throw new Error("a status can't be written for a resource without an id");
	}
	const status = create(StatusSchema, { observedGeneration, conditions });
	const response = await client.writeStatus({ id, key, status });
	return { changed: true, resource: answered(response.resource, id) };
}

function reserved(stored: Resource): Record<string, string> {
	const kept: Record<string, string> = {};
	for (const key of [finalizersKey, deletionTimestampKey]) {
		const value = Object.hasOwn(stored.metadata, key) ? stored.metadata[key] : undefined;
		if (value !== undefined) {
			kept[key] = value;
		}
	}
	return kept;
}

function sameMetadata(
	a: Readonly<Record<string, string>>,
	b: Readonly<Record<string, string>>,
): boolean {
	const keys = Object.keys(a);
	return keys.length === Object.keys(b).length && keys.every((key) => a[key] === b[key]);
}

/** Whether the owner that is asked for, if any, is the stored one; a uid counts where it is given. */
function sameOwner(asked: ID | undefined, stored: ID | undefined): boolean {
	return (
		asked === undefined ||
		(sameName(asked, stored) && (asked.uid === "" || asked.uid === stored?.uid))
	);
}

function sameConditions(a: readonly Condition[], b: readonly Condition[]): boolean {
	return (
		a.length === b.length &&
		a.every((condition, at) => {
			const other = b[at];
			return other !== undefined && equals(ConditionSchema, condition, other);
		})
	);
}

function answered(resource: Resource | undefined, id: ID): Resource {
	if (resource === undefined) {
		throw new Error(`the server answered a write of ${displayName(id)} without the resource`);
	}
	return resource;
}
