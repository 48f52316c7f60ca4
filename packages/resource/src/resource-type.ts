import { type DescMessage, getOption, hasOption, type MessageShape } from "@bufbuild/protobuf";
import { type ID, type Resource, type Scope, spec } from "@plinth/proto";
import type { Access, Decision } from "./access.ts";
import type { Decoded } from "./decoded.ts";
import { assertWellFormedType, familyKey, gvkKey, type TypeLike } from "./gvk.ts";
import { scopeName, type TenancyLike } from "./scope.ts";
import { synchronousHooks } from "./synchronous.ts";

/** A resource that a mutate hook may change, with its data decoded. */
export interface MutableDecoded<Desc extends DescMessage> {
	readonly resource: Resource;
	/** Packed into the resource again after the hook. */
	readonly data: Decoded<Desc>["data"];
}

/** Who may do what with resources of a type; what is absent is decided by `operator:…` rights. */
export interface AuthorizeHooks<Desc extends DescMessage = DescMessage> {
	/** May they read it? Asked by ID first; with the resource only after `needsResource`. */
	read?(access: Access, id: ID, decoded: Decoded<Desc> | undefined): Decision;
	/**
	 * May they write or delete it? Asked by ID, before any other code of the type runs; after
	 * `needsResource` again with the resource as it is about to be written, mutated and validated, and with the
	 * stored one that it replaces: both must be allowed.
	 */
	write?(access: Access, id: ID, decoded: Decoded<Desc> | undefined): Decision;
	/**
	 * May they name it as the target of a reference, or as an owner, from another namespace or partition?
	 * Asked of those who may read it, as `read` is.
	 */
	reference?(access: Access, id: ID, decoded: Decoded<Desc> | undefined): Decision;
	/** May they list at all? What is listed is still filtered by `read`. */
	list?(access: Access, tenancy: TenancyLike): Decision;
}

/**
 * What a hook returns whose result is not used: anything but a promise. For `void` alone, TypeScript would accept
 * functions that return anything, promises included.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: so that functions are accepted that return nothing
type NoPromise = void | string | number | bigint | boolean | null | { readonly then?: never };

/**
 * The code of a type. A hook refuses by throwing: a ConnectError goes to the caller as it is,
 * another Error as InvalidArgument with its message. Hooks are synchronous: one that returns a promise fails
 * as a bug does, with an AsynchronousHook in the log.
 */
export interface TypeHooks<Desc extends DescMessage = DescMessage> {
	/** Fills in what the caller left out. Changes its argument in place. */
	mutate?(decoded: MutableDecoded<Desc>): NoPromise;
	/** Throws where the resource must not be stored. */
	validate?(decoded: Decoded<Desc>): NoPromise;
	readonly authorize?: AuthorizeHooks<Desc>;
	/**
	 * Copies a message of the type, sharing nothing with it: its generated cloner. Where it is absent,
	 * caches copy by reflection, which costs several times as much.
	 */
	clone?(message: MessageShape<Desc>): MessageShape<Desc>;
}

/** A type of resources: its names, its scope, its message and its code. */
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
 * A resource type from a message with the option `(plinth.resource.v1.spec)`, generated or from
 * descriptors that arrived as bytes.
 *
 * @throws Error where the message lacks the option or a scope, or a name is malformed.
 */
export function defineType<Desc extends DescMessage>(
	schema: Desc,
	hooks: TypeHooks<Desc> = {},
): ResourceType<Desc> {
	if (!hasOption(schema, spec)) {
		throw new Error(
			`message ${schema.typeName} is no resource type: it lacks the option (plinth.resource.v1.spec)`,
		);
	}
	const option = getOption(schema, spec);
	if (scopeName(option.scope) === undefined) {
		throw new Error(
			`resource type ${schema.typeName} needs a scope: cluster, partition or namespace`,
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
