import { create, type DescMessage, fromBinary, type MessageShape } from "@bufbuild/protobuf";
import { type Any, AnySchema, anyIs, anyPack } from "@bufbuild/protobuf/wkt";
import { type ID, type Resource, ResourceSchema } from "@plinth/proto";
import { freezeInDevelopment } from "./freeze.ts";
import { displayName } from "./id.ts";
import type { ResourceType } from "./resource-type.ts";

/** A resource with its data decoded. */
export interface Decoded<Desc extends DescMessage = DescMessage> {
	readonly resource: Resource;
	readonly data: MessageShape<Desc>;
}

/** A resource's data is not what its type says it is. */
export class DecodeError extends Error {
	override readonly name = "DecodeError";
	readonly id: ID | undefined;

	constructor(id: ID | undefined, why: string, options?: ErrorOptions) {
		super(`${id === undefined ? "resource" : displayName(id)} can't be decoded: ${why}`, options);
		this.id = id;
	}
}

/**
 * The resource with its data decoded, anew on each call: what is returned is the caller's own. A
 * resource without data has an empty message.
 *
 * @throws DecodeError where the data is of another message, or malformed.
 */
export function decode<Desc extends DescMessage>(
	type: Pick<ResourceType<Desc>, "schema">,
	resource: Resource,
): Decoded<Desc> {
	return { resource, data: decodeData(type.schema, resource) };
}

/** One decoded form per resource object, for as long as the object lives. */
const shared = new WeakMap<Resource, Decoded>();

/**
 * As `decode`, but once per resource object, however many ask: what is returned is shared and
 * must not be changed, and neither must the resource be from then on.
 *
 * @throws DecodeError where the data is of another message, or malformed.
 */
export function decodeShared<Desc extends DescMessage>(
	type: Pick<ResourceType<Desc>, "schema">,
	resource: Resource,
): Decoded<Desc> {
	const known = shared.get(resource);
	if (known !== undefined && isOf(known, type.schema)) {
		return known;
	}
	const data = decodeData(type.schema, resource);
	freezeInDevelopment(data);
	const decoded = Object.freeze({ resource, data });
	shared.set(resource, decoded);
	return decoded;
}

function isOf<Desc extends DescMessage>(decoded: Decoded, schema: Desc): decoded is Decoded<Desc> {
	return decoded.data.$typeName === schema.typeName;
}

function decodeData<Desc extends DescMessage>(
	schema: Desc,
	resource: Resource,
): MessageShape<Desc> {
	const any = resource.data;
	if (any === undefined) {
		return create(schema);
	}
	if (!anyIs(any, schema)) {
		throw new DecodeError(resource.id, `expected ${schema.typeName}, got ${typeNameOf(any)}`);
	}
	try {
		return fromBinary(schema, any.value);
	} catch (cause) {
		throw new DecodeError(resource.id, `malformed ${schema.typeName}`, { cause });
	}
}

/** The name of the message in an Any: what follows the last slash of its type URL. */
export function typeNameOf(any: Pick<Any, "typeUrl">): string {
	return any.typeUrl.slice(any.typeUrl.lastIndexOf("/") + 1);
}

/** A message packed as the data of a resource. */
export function encodeData<Desc extends DescMessage>(schema: Desc, data: MessageShape<Desc>): Any {
	return create(AnySchema, anyPack(schema, data));
}

/** What a new resource is made of. */
export interface ResourceInit<Desc extends DescMessage> {
	readonly id: ID;
	readonly data?: MessageShape<Desc>;
	readonly owner?: ID;
	readonly metadata?: Readonly<Record<string, string>>;
}

/** A resource that is fit to be written, with its data packed. */
export function resourceOf<Desc extends DescMessage>(
	type: Pick<ResourceType<Desc>, "schema">,
	init: ResourceInit<Desc>,
): Resource {
	return create(ResourceSchema, {
		id: init.id,
		...(init.owner && { owner: init.owner }),
		metadata: { ...init.metadata },
		data: encodeData(type.schema, init.data ?? create(type.schema)),
	});
}
