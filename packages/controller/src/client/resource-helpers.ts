import { create, type DescMessage, equals, type MessageInitShape } from "@bufbuild/protobuf";
import { type CallOptions, Code, ConnectError } from "@connectrpc/connect";
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

const consistent = { headers: { "x-plinth-consistency-mode": "consistent" } } as const;

/** The desired content of a resource. */
export interface WriteInit<Desc extends DescMessage> extends ResourceInit<Desc> {
	/** The version to be replaced; without it, any version is replaced. */
	readonly version?: string;
}

/** The desired content of a status. */
export interface StatusInit {
	readonly conditions: readonly MessageInitShape<typeof ConditionSchema>[];
	/** The generation that the status describes; by default, that of the resource. */
	readonly observedGeneration?: string;
	/** The key of the entry in the resource's status; by default, the controller's name. */
	readonly key?: string;
}

/** The result of a write that is made only if something differs. */
export interface WriteResult {
	/** Whether anything was written. */
	readonly changed: boolean;
	/** The resource after the write. */
	readonly resource: Resource;
}

/** Reads the resource of that name; `undefined` if it does not exist. */
export async function readResource<Desc extends DescMessage>(
	client: ResourceClient,
	type: ResourceType<Desc>,
	id: ID,
	options?: CallOptions,
): Promise<Decoded<Desc> | undefined> {
	try {
		const { resource } = await client.read({ id }, options);
		return resource && decode(type, resource);
	} catch (error) {
		if (error instanceof ConnectError && error.code === Code.NotFound) {
			return undefined;
		}
		throw error;
	}
}

/** Writes a resource and returns it as stored. */
export async function writeResource<Desc extends DescMessage>(
	client: ResourceClient,
	type: ResourceType<Desc>,
	init: WriteInit<Desc>,
): Promise<Decoded<Desc>> {
	const resource = resourceOf(type, init);
	resource.version = init.version ?? "";
	return decode(type, resourceIn((await client.write({ resource })).resource, init.id));
}

/**
 * Writes a resource only if its data, or the metadata or owner in `init`, differ from `existing`. An
 * existing resource is replaced by compare-and-swap; fields that `init` omits (metadata, owner, owner
 * references, finalizers, deletion mark) keep their values. Without `existing` it is only created, so that a write that
 * lands late replaces nothing.
 *
 * @throws ConnectError Aborted if another version is stored, AlreadyExists if a resource was created that differs.
 */
export async function writeIfDifferent<Desc extends DescMessage>(
	client: ResourceClient,
	type: ResourceType<Desc>,
	existing: Decoded<Desc> | undefined,
	init: ResourceInit<Desc>,
): Promise<WriteResult> {
	if (existing === undefined) {
		return createResource(client, type, init);
	}
	const replacement = replacementOf(type, existing, init);
	if (replacement === undefined) {
		return { changed: false, resource: existing.resource };
	}
	const { resource } = await client.write({ resource: replacement });
	return { changed: true, resource: resourceIn(resource, init.id) };
}

async function createResource<Desc extends DescMessage>(
	client: ResourceClient,
	type: ResourceType<Desc>,
	init: ResourceInit<Desc>,
): Promise<WriteResult> {
	try {
		const request = { resource: resourceOf(type, init), createOnly: true };
		const { resource } = await client.write(request);
		return { changed: true, resource: resourceIn(resource, init.id) };
	} catch (error) {
		// Another writer was first, which is no conflict if it has written the same. Other reads than consistent ones may not
		// have it yet, or have what was stored before.
		const isTaken = error instanceof ConnectError && error.code === Code.AlreadyExists;
		const created = isTaken ? await readResource(client, type, init.id, consistent) : undefined;
		if (created === undefined || replacementOf(type, created, init) !== undefined) {
			throw error;
		}
		return { changed: false, resource: created.resource };
	}
}

/** What replaces an existing resource; `undefined` if nothing differs. */
function replacementOf<Desc extends DescMessage>(
	type: ResourceType<Desc>,
	existing: Decoded<Desc>,
	init: ResourceInit<Desc>,
): Resource | undefined {
	const stored = existing.resource;
	const metadata =
		init.metadata === undefined ? stored.metadata : { ...reserved(stored), ...init.metadata };
	const data = init.data ?? create(type.schema);
	if (
		sameMetadata(metadata, stored.metadata) &&
		sameOwner(init.owner, stored.owner) &&
		equals(type.schema, data, existing.data)
	) {
		return undefined;
	}
	const owner = init.owner ?? stored.owner;
	return create(ResourceSchema, {
		...resourceOf(type, { id: init.id, data, metadata, ...(owner && { owner }) }),
		version: stored.version,
		ownerReferences: stored.ownerReferences,
	});
}

/** Writes a status only if it differs from the one in `resource`. */
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
	return { changed: true, resource: resourceIn(response.resource, id) };
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

/** Whether the desired owner, if any, is the stored one; the uid is compared only if it is set. */
function sameOwner(desired: ID | undefined, stored: ID | undefined): boolean {
	return (
		desired === undefined ||
		(sameName(desired, stored) && (desired.uid === "" || desired.uid === stored?.uid))
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

function resourceIn(resource: Resource | undefined, id: ID): Resource {
	if (resource === undefined) {
		throw new Error(`the response to a write of ${displayName(id)} lacks the resource`);
	}
	return resource;
}
