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
import { refuseRegion } from "../requests/regions.ts";
import { checkId, requireName, requireType } from "../requests/request-checks.ts";
import type { ServiceContext } from "../service-context.ts";
import { checkMark } from "./stored-rules.ts";

/**
 * A resource in a write request, during its checks. Write and MutateAndValidate share this implementation.
 * Its shape, type, scope and data are valid, and the caller may write a resource with that ID.
 */
export class Candidate {
	readonly type: ResourceType;
	readonly id: ID;
	/** A copy of the resource in the request, with its tenancies filled in. */
	readonly input: Resource;
	/** The caller on whose behalf it is written; absent for the deployment itself. */
	readonly caller: Caller | undefined;
	readonly #decision: ReturnType<typeof decideWrite>;
	readonly #context: ServiceContext;
	readonly #access: Access;
	/** Its data, decoded. @throws ConnectError if it is malformed, as data of a marked resource may be. */
	readonly #data: () => MessageShape<DescMessage>;
	#prepared: (() => Resource) | undefined;

	/** @param caller - absent for the deployment itself. */
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
		const { type, id } = checkId(context, input.id, "resource.id");
		refuseRegion(id);
		if (type.key === Tombstone.key) {
			// The reaper deletes, with full rights, everything that the owner in a tombstone owned.
			throw invalidArgument("tombstones are written only by deletions");
		}
		this.type = type;
		this.id = id;
		this.input = cloneResource(input);
		this.input.id = id;
		this.#checkOwners();
		checkPartLimits(this.input, "resource");
		checkMetadata(this.input);
		checkDataType(type, this.input);
		this.#data = captureOutcome(() => decodeInput(type, this.input));
		if (!isMarkedForDeletion(this.input)) {
			this.#data();
		}
		this.#decision = decideWrite(type, access, id);
		enforce(this.#decision);
	}

	/**
	 * The resource after the type's mutate hook, valid by its descriptor's rules and its validate hook. The
	 * hooks run once, no matter how many times the commit is attempted. Callers must not modify the result.
	 *
	 * @throws ConnectError if a rule or a hook refuses it.
	 */
	prepare(): Resource {
		this.#prepared ??= captureOutcome(() => this.#runHooks());
		return this.#prepared();
	}

	#runHooks(): Resource {
		const { hooks, schema } = this.type;
		const { id, owner, version, status } = this.input;
		let resource = this.input;
		const data = this.#data();
		let decoded: Decoded<DescMessage> = { resource, data };
		if (hooks.mutate !== undefined) {
			resource = cloneResource(resource);
			decoded = { resource, data };
			const { mutate } = hooks;
			runHook(() => mutate.call(hooks, decoded));
			resource.data = encodeData(schema, decoded.data);
			// A hook can't change the fields that identify the resource, nor its version, status and origin.
			Object.assign(resource, { id, version, status });
			if (resource.origin !== undefined) {
				delete resource.origin;
			}
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
	 * Decides whether the caller may replace the stored resource, if the type's hook must see it. The hook is
	 * that of the group version under which it is stored.
	 *
	 * @throws ConnectError PermissionDenied.
	 */
	authorizeReplacing(stored: Resource): void {
		if (this.#decision.kind === "needs-resource") {
			const type = storedType(this.#context.registry, this.type, stored);
			const decision = decideOnStored(decideWrite, type, this.#access, this.id, stored);
			enforceWithResource(decision, this.id);
		}
	}

	#checkOwners(): void {
		const { owner, ownerReferences } = this.input;
		if (owner !== undefined) {
			const { id } = checkId(this.#context, owner, "resource.owner");
			if (id.region !== undefined) {
				throw malformed("resource.owner", "a copy can't own resources");
			}
			this.input.owner = id;
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

/** Runs a function now. Each call of the result returns its value, or throws its error. */
function captureOutcome<T>(run: () => T): () => T {
	try {
		const value = run();
		return () => value;
	} catch (error) {
		return () => {
			throw error;
		};
	}
}

/** Maps an error of a type's hook to InvalidArgument, unless only a bug in the hook explains it. */
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
/** Checks the metadata, except for the deletion timestamp: see `checkMark`. */
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

/** The data in the request must be a message of the type. */
function checkDataType(type: ResourceType, resource: Resource): void {
	const typeName = resource.data === undefined ? type.schema.typeName : typeNameOf(resource.data);
	if (typeName !== type.schema.typeName) {
		throw invalidArgument(
			`resource.data is of wrong type. expected: "${type.schema.typeName}", ${got(typeName)}`,
		);
	}
}

/**
 * The data in the request, decoded. Data of a resource that is marked for deletion may be undecodable: only
 * finalizers can change then, and the data must equal the stored data.
 */
function decodeInput(type: ResourceType, resource: Resource): MessageShape<DescMessage> {
	try {
		return decode(type, resource).data;
	} catch (error) {
		if (error instanceof DecodeError) {
			throw malformed("resource.data", `malformed ${type.schema.typeName}`);
		}
		throw error;
	}
}
