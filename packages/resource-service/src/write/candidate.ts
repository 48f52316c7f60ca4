import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { cloneResource, type ID, type Resource } from "@plinth/proto";
import {
	type Access,
	type Caller,
	type Decoded,
	DecodeError,
	decode,
	encodeData,
	finalizersKey,
	isMarkedForDeletion,
	type ResourceType,
	sameName,
	Tombstone,
	typeNameOf,
} from "@plinth/resource";
import {
	decideOnStored,
	decideWrite,
	enforce,
	enforceWithResource,
	storedType,
} from "../access/authorization.ts";
import { got, invalidArgument, malformed, malformedValue, missing } from "../errors/refusal.ts";
import { checkPartLimits } from "../requests/limits.ts";
import { checkId, requireName, requireType } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";
import { checkMark } from "./stored-rules.ts";

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
	/** On whose behalf it is written; absent: on that of the deployment itself. */
	readonly caller: Caller | undefined;
	readonly #decision: ReturnType<typeof decideWrite>;
	readonly #context: ServiceContext;
	readonly #access: Access;
	/** Its data, decoded. @throws ConnectError where it is malformed, as data of a marked resource may be. */
	readonly #data: () => MessageShape<DescMessage>;
	#prepared: (() => Resource) | undefined;

	/** @param caller - absent: the deployment itself. */
	constructor(
		context: ServiceContext,
		access: Access,
		caller: Caller | undefined,
		input: Resource | undefined,
	) {
		if (input === undefined) {
			throw missing("resource");
		}
		this.#context = context;
		this.#access = access;
		this.caller = caller;
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
		checkDataType(type, this.given);
		this.#data = outcomeOf(() => decodeGiven(type, this.given));
		if (!isMarkedForDeletion(this.given)) {
			this.#data();
		}
		this.#decision = decideWrite(type, access, id);
		enforce(this.#decision);
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
		const data = this.#data();
		let decoded: Decoded<DescMessage> = { resource, data };
		if (hooks.mutate !== undefined) {
			resource = cloneResource(resource);
			decoded = { resource, data };
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
			checkMark(resource);
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
	 * Decides on replacing what is stored, where the type's hook must see it: by the hook of the version that it
	 * is stored under.
	 *
	 * @throws ConnectError PermissionDenied.
	 */
	authorizeWith(stored: Resource): void {
		if (this.#decision.kind === "needs-resource") {
			const type = storedType(this.#context.registry, this.type, stored);
			const decision = decideOnStored(decideWrite, type, this.#access, this.id, stored);
			enforceWithResource(decision, this.id);
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
/** Checks the metadata, but for the deletion timestamp: see `checkMark`. */
function checkMetadata({ metadata }: Resource): void {
	const finalizers = metadata[finalizersKey];
	if (finalizers !== undefined && !finalizersPattern.test(finalizers)) {
		throw malformedValue(
			`resource.metadata.${finalizersKey}`,
			"must be names separated by single spaces",
			finalizers,
		);
	}
}

/** The data that a caller gave must be a message of the type. */
function checkDataType(type: ResourceType, resource: Resource): void {
	const typeName = resource.data === undefined ? type.schema.typeName : typeNameOf(resource.data);
	if (typeName !== type.schema.typeName) {
		throw invalidArgument(
			`resource.data is of wrong type. expected: "${type.schema.typeName}", ${got(typeName)}`,
		);
	}
}

/**
 * The data that a caller gave. Where the resource is marked for deletion, it may be what its type can't
 * decode: nothing but finalizers can be written then, and the data must be what is stored.
 */
function decodeGiven(type: ResourceType, resource: Resource): MessageShape<DescMessage> {
	try {
		return decode(type, resource).data;
	} catch (error) {
		if (error instanceof DecodeError) {
			throw malformed("resource.data", `malformed ${type.schema.typeName}`);
		}
		throw error;
	}
}
