import { type DescMessage, getOption, hasOption, type MessageShape } from "@bufbuild/protobuf";
import { type ID, type Resource, type Scope, spec } from "@plinth/proto";
import type { Access, Decision } from "./access.ts";
import type { Decoded } from "./decoded.ts";
import { assertWellFormedType, familyKey, gvkKey, type TypeLike } from "./gvk.ts";
import { scopeName, type TenancyLike } from "./scope.ts";
import { synchronousHooks } from "./synchronous.ts";

/** A resource that a mutate hook may modify, with its data decoded. */
export interface MutableDecoded<Desc extends DescMessage> {
	readonly resource: Resource;
	/** Packed into the resource again after the hook. */
	readonly data: Decoded<Desc>["data"];
}

/** The authorization of operations on resources of a type; for absent hooks, `operator:…` rights decide. */
export interface AuthorizeHooks<Desc extends DescMessage = DescMessage> {
	/** Whether the caller may read it. Called with the ID first; with the resource only after `needsResource`. */
	read?(access: Access, id: ID, decoded: Decoded<Desc> | undefined): Decision;
	/**
	 * Whether the caller may write or delete it. Called with the ID, before any other code of the type runs;
	 * after `needsResource`, called again with the mutated and validated resource that is about to be written,
	 * and with the stored one that it replaces: both must be allowed.
	 */
	write?(access: Access, id: ID, decoded: Decoded<Desc> | undefined): Decision;
	/**
	 * Whether the caller may name it as the target of a reference, or as an owner, from another namespace or
	 * partition. Called like `read`, and only if `read` allows it.
	 */
	reference?(access: Access, id: ID, decoded: Decoded<Desc> | undefined): Decision;
	/** Whether the caller may list at all. The results are still filtered by `read`. */
	list?(access: Access, tenancy: TenancyLike): Decision;
}

/**
 * The return type of hooks whose result is not used: anything but a promise. For `void` alone, TypeScript
 * would accept functions that return anything, including promises.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: accepts functions that return nothing
type NoPromise = void | string | number | bigint | boolean | null | { readonly then?: never };

/**
 * The hooks of a type. A hook refuses a call by throwing: a ConnectError is returned to the caller unchanged,
 * any other Error as InvalidArgument with its message. Hooks are synchronous: returning a promise is a bug,
 * which is logged as an AsynchronousHook and returned as an internal error.
 */
export interface TypeHooks<Desc extends DescMessage = DescMessage> {
	/** Fills in defaults. Modifies its argument in place. */
	mutate?(decoded: MutableDecoded<Desc>): NoPromise;
	/** Throws if the resource must not be stored. */
	validate?(decoded: Decoded<Desc>): NoPromise;
	readonly authorize?: AuthorizeHooks<Desc>;
	/**
	 * Makes a deep copy of a message of the type: the generated cloner. Without it, caches copy by
	 * reflection, which is several times slower.
	 */
	clone?(message: MessageShape<Desc>): MessageShape<Desc>;
}

/** A resource type: its names, its scope, its message and its hooks. */
export interface ResourceType<Desc extends DescMessage = DescMessage> {
	readonly schema: Desc;
	readonly type: TypeLike;
	/** `demo.v2.Artist` */
	readonly key: string;
	/** `demo.Artist`: shared by the type's group versions. */
	readonly family: string;
	readonly scope: Scope;
	readonly hooks: TypeHooks<Desc>;
}

/**
 * Defines a resource type by a message with the option `(plinth.resource.v1.spec)`, from generated code or
 * from serialized descriptors.
 *
 * @throws Error if the message lacks the option or a scope, or a name is malformed.
 */
export function defineType<Desc extends DescMessage>(
	schema: Desc,
	hooks: TypeHooks<Desc> = {},
): ResourceType<Desc> {
	if (!hasOption(schema, spec)) {
		throw new Error(
			`message ${schema.typeName} is not a resource type: it lacks the option (plinth.resource.v1.spec), such as option (plinth.resource.v1.spec) = { scope: SCOPE_NAMESPACE };`,
		);
	}
	const option = getOption(schema, spec);
	if (scopeName(option.scope) === undefined) {
		throw new Error(
			`resource type ${schema.typeName} needs a scope in its option (plinth.resource.v1.spec): SCOPE_CLUSTER, SCOPE_PARTITION or SCOPE_NAMESPACE`,
		);
	}
	const [group = "", groupVersion = ""] = schema.file.proto.package.split(".").slice(-2);
	const type: TypeLike = Object.freeze({
		group: option.group || group,
		groupVersion: option.groupVersion || groupVersion,
		kind: option.kind || schema.name,
	});
	assertWellFormedType(type);
	return Object.freeze({
		schema,
		type,
		key: gvkKey(type),
		family: familyKey(type),
		scope: option.scope,
		hooks: synchronousHooks(hooks, `resource type ${gvkKey(type)}`),
	});
}
