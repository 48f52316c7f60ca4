import { create, type DescMessage, equals } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { KnownType } from "@plinth/documents";
import type { WantedResource } from "@plinth/documents/yaml";
import { type ID, OwnerReferenceSchema, type Resource, ResourceSchema } from "@plinth/proto";
import {
	DecodeError,
	decode,
	deletionTimestampKey,
	displayName,
	encodeData,
	finalizersKey,
} from "@plinth/resource";
import { type Clock, retry, systemRandom } from "@plinth/runtime";
import type { Connection } from "../api/connection.ts";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";

/** The result of applying a document. */
export interface Applied {
	readonly kind: "created" | "updated" | "unchanged";
	readonly before: Resource | undefined;
	/** The resource as stored now, or as a dry run would store it. */
	readonly after: Resource;
}

/** Options for applying documents. */
export interface ApplyOptions {
	readonly resources: Connection["resources"];
	readonly clock: Clock;
	/** Ends reads, and keeps writes from being sent. */
	readonly signal: AbortSignal;
	/** Ends a write that has been sent; `signal` by default. After it, the write may have been done or not. */
	readonly writeSignal?: AbortSignal;
	/** Whether the server only checks the requests and stores nothing. */
	readonly dryRun: boolean;
}

const retries = { attempts: 10, baseMs: 10, maxMs: 1_000 };
const consistent = { headers: { "x-plinth-consistency-mode": "consistent" } };

/**
 * Applies one document: reads the resource, and writes it by compare-and-swap if the result would differ from
 * what is stored. On a conflict it retries from the read, with backoff and jitter.
 *
 * @throws ConnectError of the server; Failure if the document is based on an older generation or incarnation.
 */
export async function applyResource(
	wanted: WantedResource,
	options: ApplyOptions,
): Promise<Applied> {
	return retry(() => tryApply(wanted, options), {
		...retries,
		runtime: { clock: options.clock, random: systemRandom },
		isRetryable: (error) => error instanceof ConnectError && error.code === Code.Aborted,
		signal: options.signal,
	});
}

async function tryApply(wanted: WantedResource, options: ApplyOptions): Promise<Applied> {
	const { resources, dryRun, signal, writeSignal = signal } = options;
	const before = await readStored(resources, wanted.id, signal);
	checkIncarnation(wanted, before);
	checkSet(wanted, before);
	const resource = merge(wanted, before);
	if (before === undefined) {
		const response = dryRun
			? await resources.mutateAndValidate({ resource }, { signal })
			: await resources.write({ resource }, { signal: writeSignal });
		return { kind: "created", before, after: resourceOf(response.resource, wanted.id) };
	}
	const checked = await resources.mutateAndValidate({ resource }, { signal });
	const planned = resourceOf(checked.resource, wanted.id);
	if (sameContent(wanted.type, before, planned)) {
		return { kind: "unchanged", before, after: before };
	}
	if (wanted.generation !== undefined && wanted.generation !== before.generation) {
		throw new Failure(
			exitCodes.conflict,
			`it has changed since the document was read: its generation is ${before.generation}, that of the document ${wanted.generation}. Get it again and repeat the change, or remove generation from the document to overwrite it`,
		);
	}
	if (dryRun) {
		return { kind: "updated", before, after: planned };
	}
	const written = await resources.write({ resource }, { signal: writeSignal });
	return { kind: "updated", before, after: resourceOf(written.resource, wanted.id) };
}

/** The stored resource in any group version, or `undefined`. The read is linearizable. */
export async function readStored(
	resources: Connection["resources"],
	id: ID,
	signal: AbortSignal,
): Promise<Resource | undefined> {
	try {
		const { resource } = await resources.read(
			{ id: { ...id, uid: "" } },
			{ ...consistent, signal },
		);
		return resource;
	} catch (error) {
		if (!(error instanceof ConnectError)) {
			throw error;
		}
		// A missing tenancy is NotFound too. The write will report it.
		if (error.code === Code.NotFound) {
			return undefined;
		}
		const groupVersion = storedGroupVersion(error);
		if (id.type === undefined || groupVersion === undefined) {
			throw error;
		}
		return readStored(resources, { ...id, type: { ...id.type, groupVersion } }, signal);
	}
}

/** The group version of the stored resource, if the read failed because it differs from the requested one. */
function storedGroupVersion({ code, rawMessage }: ConnectError): string | undefined {
	return code === Code.InvalidArgument
		? /^resource was requested with .* stored with GroupVersion="([^"]+)"$/.exec(rawMessage)?.[1]
		: undefined;
}

function checkIncarnation({ id, generation }: WantedResource, before: Resource | undefined): void {
	const gone = "the resource from which the document was read no longer exists";
	if (before === undefined && (id.uid || generation)) {
		throw new Failure(
			exitCodes.conflict,
			`${gone}: remove uid and generation from the document to create it again`,
		);
	}
	if (before !== undefined && id.uid && id.uid !== before.id?.uid) {
		throw new Failure(
			exitCodes.conflict,
			`${gone}. Another ${id.name}, with uid ${before.id?.uid}, exists now: removing uid and generation from the document overwrites it`,
		);
	}
}

/** A set takes no resource from another one, which would delete it as soon as its own documents lack it. */
function checkSet(wanted: WantedResource, before: Resource | undefined): void {
	const { set } = wanted;
	const other = before?.metadata[setKey];
	if (set !== undefined && other && other !== set && !leavesSet(wanted)) {
		throw new Failure(
			exitCodes.conflict,
			`it belongs to the set ${other}: apply it with --set ${other}, or take it out of that set with ${setKey}: "" in its metadata`,
		);
	}
}

/** The document merged over the stored resource. */
function merge(wanted: WantedResource, stored: Resource | undefined): Resource {
	const { type, removed } = wanted;
	const kept = (field: string) => (removed?.has(field) ? undefined : stored);
	const owner = wanted.owner ?? kept("owner")?.owner;
	const data = wanted.data ?? (removed?.has("data") ? create(type.schema) : undefined);
	const any = data === undefined ? stored?.data : encodeData(type.schema, data);
	return create(ResourceSchema, {
		id: wanted.id,
		version: stored?.version ?? "",
		metadata: mergeMetadata(wanted, stored?.metadata ?? {}),
		ownerReferences: [
			...(wanted.ownerReferences ?? kept("owner_references")?.ownerReferences ?? []),
		],
		...(owner && { owner }),
		...(any && { data: any }),
	});
}

/** Metadata in the document replaces all except finalizers, the deletion timestamp and the mark of a set. */
function mergeMetadata(
	wanted: WantedResource,
	all: Readonly<Record<string, string>>,
): Record<string, string> {
	const stored = Object.fromEntries(
		Object.entries(all).filter(([key]) => !wanted.removed?.has(`metadata.${key}`)),
	);
	const { [setKey]: _ignored, ...metadata } = wanted.metadata ?? stored;
	const kept = [finalizersKey, deletionTimestampKey].filter((key) => Object.hasOwn(stored, key));
	const mark = wanted.set ?? (leavesSet(wanted) ? undefined : stored[setKey]);
	return {
		...Object.fromEntries(kept.map((key) => [key, stored[key] ?? ""])),
		...metadata,
		...(mark !== undefined && { [setKey]: mark }),
	};
}

/**
 * The metadata key of the set that a resource belongs to: the documents that are applied together. Its value in a
 * document marks nothing, since the document may be a copy of a resource of another set.
 */
export const setKey = "apply-set";

/** Whether the document takes its resource out of the set that it belongs to. */
function leavesSet({ metadata }: WantedResource): boolean {
	return metadata?.[setKey] === "";
}

function sameContent({ schema }: KnownType, a: Resource, b: Resource): boolean {
	return (
		a.id?.type?.groupVersion === b.id?.type?.groupVersion &&
		sameData(schema, a, b) &&
		sameMetadata(a.metadata, b.metadata) &&
		a.ownerReferences.length === b.ownerReferences.length &&
		a.ownerReferences.every((reference, at) => {
			const other = b.ownerReferences[at];
			return other !== undefined && equals(OwnerReferenceSchema, reference, other);
		})
	);
}

/** Undecodable stored data never equals the planned data. */
function sameData(schema: DescMessage, stored: Resource, planned: Resource): boolean {
	try {
		return equals(schema, decode({ schema }, stored).data, decode({ schema }, planned).data);
	} catch (error) {
		if (error instanceof DecodeError) {
			return false;
		}
		throw error;
	}
}

function sameMetadata(
	a: Readonly<Record<string, string>>,
	b: Readonly<Record<string, string>>,
): boolean {
	const keys = Object.keys(a);
	return (
		keys.length === Object.keys(b).length &&
		keys.every((key) => Object.hasOwn(b, key) && a[key] === b[key])
	);
}

function resourceOf(resource: Resource | undefined, id: ID): Resource {
	if (resource === undefined) {
		throw new Error(`the response to a write of ${displayName(id)} has no resource`);
	}
	return resource;
}
