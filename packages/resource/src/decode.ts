import {
	create,
	type DescMessage,
	fromBinary,
	isMessage,
	type MessageShape,
} from "@bufbuild/protobuf";
import { type Any, AnySchema, anyIs, anyPack } from "@bufbuild/protobuf/wkt";
import { type ID, type Resource, ResourceSchema } from "@plinth/proto";
import { attachment } from "@plinth/runtime";
import { compileCompleteDecoder, type Decoder } from "@plinth/wire-format";
import type { Decoded } from "./decoded.ts";
import { decodedSize } from "./decoded-size.ts";
import { freezeInDevelopment } from "./freeze.ts";
import { displayName } from "./id.ts";
import { RecentData } from "./recent-data.ts";
import type { ResourceType } from "./resource-type.ts";

/** The data of a resource is not a valid message of its type. */
export class DecodeError extends Error {
	override readonly name = "DecodeError";
	readonly id: ID | undefined;

	constructor(id: ID | undefined, reason: string, options?: ErrorOptions) {
		super(
			`${id === undefined ? "resource" : displayName(id)} can't be decoded: ${reason}`,
			options,
		);
		this.id = id;
	}
}

/**
 * The resource with its data decoded. Each call decodes again, and the result belongs to the caller. A
 * resource without data has an empty message.
 *
 * @throws DecodeError if the data is another message or malformed.
 */
export function decode<Desc extends DescMessage>(
	type: Pick<ResourceType<Desc>, "schema">,
	resource: Resource,
): Decoded<Desc> {
	return { resource, data: decodeData(type.schema, resource) };
}

/** Decoded forms that are kept as long as their resource object. */
const kept = attachment<Resource, Decoded>();

/** Decoded forms that are too large for that. */
const recent = new RecentData(64 * 1024 * 1024);

/**
 * Like `decode`, but mostly decodes once per resource object, for any number of callers: the result is
 * shared and must not be modified, and neither must the resource from then on.
 *
 * A decoded form of more than 2 KiB and 12 times the encoded data is kept only while it is among the most
 * recently used ones, which take at most 64 MiB in this process, or as much as the largest.
 *
 * @throws DecodeError if the data is another message or malformed.
 */
export function decodeShared<Desc extends DescMessage>(
	type: Pick<ResourceType<Desc>, "schema">,
	resource: Resource,
): Decoded<Desc> {
	const known = kept.get(resource);
	if (known !== undefined && isOf(known, type.schema)) {
		return known;
	}
	const recentData = recent.get(resource);
	if (recentData !== undefined && isMessage(recentData, type.schema)) {
		return Object.freeze({ resource, data: recentData });
	}
	const data = decodeData(type.schema, resource);
	freezeInDevelopment(data);
	const decoded = Object.freeze({ resource, data });
	const size = decodedSize(data);
	const encodedBytes = resource.data?.value.byteLength ?? 0;
	if (size <= 2048 + 12 * encodedBytes) {
		kept.set(resource, decoded);
	} else {
		recent.set(resource, data, size + encodedBytes);
	}
	return decoded;
}

/**
 * Whether the shared decoded form of the resource is kept as long as the resource object. Code that retains
 * a form that is not kept makes the process exceed its memory limit.
 */
export function cachesDecodedForm(resource: Resource): boolean {
	return kept.get(resource) !== undefined;
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
		return decodeBinary(schema, any.value);
	} catch (cause) {
		throw new DecodeError(resource.id, `malformed ${schema.typeName}`, { cause });
	}
}

/** The decoders that were generated for message types; `undefined` for types that are not covered. */
const decoders = new WeakMap<DescMessage, { readonly decode: Decoder | undefined }>();

function decodeBinary<Desc extends DescMessage>(
	schema: Desc,
	bytes: Uint8Array,
): MessageShape<Desc> {
	let decoder = decoders.get(schema);
	if (decoder === undefined) {
		decoder = { decode: compileCompleteDecoder(schema, { copiesBytes: false }) };
		decoders.set(schema, decoder);
	}
	const message = decoder.decode?.(bytes);
	return message !== undefined && isMessage(message, schema) ? message : fromBinary(schema, bytes);
}

/** The name of the message in an Any: the part of its type URL after the last slash. */
export function typeNameOf(any: Pick<Any, "typeUrl">): string {
	return any.typeUrl.slice(any.typeUrl.lastIndexOf("/") + 1);
}

/** A message packed as the data of a resource. */
export function encodeData<Desc extends DescMessage>(schema: Desc, data: MessageShape<Desc>): Any {
	return create(AnySchema, anyPack(schema, data));
}

/** The content of a new resource. */
export interface ResourceInit<Desc extends DescMessage> {
	readonly id: ID;
	readonly data?: MessageShape<Desc>;
	readonly owner?: ID;
	readonly metadata?: Readonly<Record<string, string>>;
}

/** A resource that can be written, with its data packed. */
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
