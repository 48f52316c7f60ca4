import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { cloneResource, type ID, type Resource } from "@plinth/proto";
import {
	type Access,
	type Decoded,
	DecodeError,
	decode,
	deletionTimestampKey,
	encodeData,
	finalizersKey,
	type ResourceType,
	sameName,
	Tombstone,
	typeNameOf,
} from "@plinth/resource";
import { decideRead, decideWrite, enforce, enforceWithResource } from "./authorization.ts";
import { checkPartLimits } from "./limits.ts";
import { invalidArgument, malformed, missing } from "./refusal.ts";
import { checkId, requireName, requireType } from "./request-checks.ts";
import type { ServiceContext } from "./service-context.ts";

/**
 * A resource that a caller wants to have written, on its way through the checks: the one
 * implementation that Write and MutateAndValidate share. Its shape, type, scope and data are good,
 * and the caller may write a resource of that ID.
 */
export class Candidate {
	readonly type: ResourceType;
	readonly id: ID;
	/** As the caller sent it, tenancies filled in. A copy of its own. */
	readonly given: Resource;
	readonly #decision: ReturnType<typeof decideWrite>;
	readonly #context: ServiceContext;
	readonly #access: Access;
	/** Its data, decoded. */
	readonly #data: MessageShape<DescMessage>;
	#prepared: (() => Resource) | undefined;

	constructor(context: ServiceContext, access: Access, input: Resource | undefined) {
		if (input === undefined) {
			throw missing("resource");
		}
		this.#context = context;
		this.#access = access;
		const { type, id } = checkId(context.registry, input.id, "resource.id");
		if (type.key === Tombstone.key) {
			// The reaper deletes, with full rights, what the owner that a tombstone names has owned.
			throw invalidArgument("tombstones are written by deletions only");
		}
		this.type = type;
		this.id = id;
		this.given = cloneResource(input);
		this.given.id = id;
		this.#checkOwners();
		checkPartLimits(this.given, "resource");
		checkMetadata(this.given);
		this.#data = decodeGiven(type, this.given);
		this.#decision = decideWrite(type, access, id);
		enforce(this.#decision);
		this.#authorizeOwner();
	}

	/**
	 * The resource after the type's mutate hook, valid by its descriptor's rules and its validate
	 * hook. The hooks run once, however often a commit is tried. What is returned is not to be
	 * changed.
	 *
	 * @throws ConnectError where a rule or a hook refuses it.
	 */
	prepare(): Resource {
		this.#prepared ??= outcomeOf(() => this.#runHooks());
		return this.#prepared();
	}

	#runHooks(): Resource {
		const { hooks, schema } = this.type;
		const { id, owner, version, status } = this.given;
		let resource = this.given;
		let decoded: Decoded<DescMessage> = { resource, data: this.#data };
		if (hooks.mutate !== undefined) {
			resource = cloneResource(resource);
			decoded = { resource, data: this.#data };
			const { mutate } = hooks;
			runHook(() => mutate.call(hooks, decoded));
			resource.data = encodeData(schema, decoded.data);
			// What names the resource, and what is not the type's to say, stays as it was.
			Object.assign(resource, { id, version, status });
			if (owner === undefined) {
				delete resource.owner;
			} else {
				resource.owner = owner;
			}
			checkPartLimits(resource, "resource");
			checkMetadata(resource);
		}
		this.#context.rules.check(schema, decoded.data, "resource.data");
		const { validate } = hooks;
		if (validate !== undefined) {
			runHook(() => validate.call(hooks, decoded));
		}
		if (this.#decision.kind === "needs-resource") {
			enforceWithResource(decideWrite(this.type, this.#access, id ?? this.id, decoded), this.id);
		}
		return resource;
	}

	/**
	 * Decides on a write that no hook sees, because it leaves the content as it is stored.
	 *
	 * @throws ConnectError PermissionDenied.
	 */
	authorizeWith(stored: Resource): void {
		if (this.#decision.kind === "needs-resource") {
			const decoded = decode(this.type, stored);
			enforceWithResource(decideWrite(this.type, this.#access, this.id, decoded), this.id);
		}
	}

	/** Whoever names an owner learns whether it is there, and its uid: that takes the right to read it. */
	#authorizeOwner(): void {
		const { owner } = this.given;
		const type = owner?.type && this.#context.registry.get(owner.type);
		if (owner !== undefined && type !== undefined) {
			enforce(decideRead(type, this.#access, owner));
		}
	}

	#checkOwners(): void {
		const { owner, ownerReferences } = this.given;
		if (owner !== undefined) {
			this.given.owner = checkId(this.#context.registry, owner, "resource.owner").id;
			if (sameName(owner, this.id)) {
				throw malformed("resource.owner", "a resource can't own itself");
			}
		}
		for (const [position, reference] of ownerReferences.entries()) {
			const path = `resource.owner_references[${position}]`;
			requireType(reference.type, `${path}.type`);
			requireName(reference.name, `${path}.name`);
		}
	}
}

/** Runs a function now, and answers what it did, return or throw, on each call. */
function outcomeOf<T>(run: () => T): () => T {
	try {
		const value = run();
		return () => value;
	} catch (error) {
		return () => {
			throw error;
		};
	}
}

/** What a type's code refuses is the caller's doing, but for what only a bug in it throws. */
function runHook(hook: () => void): void {
	try {
		hook();
	} catch (error) {
		if (error instanceof ConnectError || !(error instanceof Error) || isBug(error)) {
			throw error;
		}
		throw invalidArgument(error.message);
	}
}

function isBug(error: Error): boolean {
	return (
		error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError
	);
}

const finalizersPattern = /^([^\s]+( [^\s]+)*)?$/;
const timestampPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$/i;

function checkMetadata(resource: Resource): void {
	const finalizers = resource.metadata[finalizersKey];
	if (finalizers !== undefined && !finalizersPattern.test(finalizers)) {
		throw malformed(
			`resource.metadata.${finalizersKey}`,
			"must be names separated by single spaces",
		);
	}
	const timestamp = resource.metadata[deletionTimestampKey];
	if (
		timestamp !== undefined &&
		!(timestampPattern.test(timestamp) && Number.isFinite(Date.parse(timestamp)))
	) {
		throw malformed(`resource.metadata.${deletionTimestampKey}`, "must be an RFC 3339 time");
	}
}

/** The data that a caller gave, which must be a message of the type. */
function decodeGiven(type: ResourceType, resource: Resource): MessageShape<DescMessage> {
	const typeName = resource.data === undefined ? type.schema.typeName : typeNameOf(resource.data);
	if (typeName !== type.schema.typeName) {
		throw invalidArgument(
			`resource.data is of wrong type (expected=${type.schema.typeName}, got=${typeName})`,
		);
	}
	try {
		return decode(type, resource).data;
	} catch (error) {
		if (error instanceof DecodeError) {
			throw malformed("resource.data", `malformed ${typeName}`);
		}
		throw error;
	}
}
