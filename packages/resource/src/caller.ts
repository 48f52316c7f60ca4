import type { Resource } from "@plinth/proto";
import type { Decision } from "./access.ts";
import type { TypeLike } from "./gvk.ts";
import type { TenancyLike } from "./scope.ts";

/** A resource that a caller names as the target of a reference, or as an owner. */
export interface NamedTarget {
	readonly type: TypeLike;
	readonly tenancy: TenancyLike;
	readonly name: string;
	/** Whether the resource that names it is in another namespace or partition. */
	readonly isCrossTenancy: boolean;
}

/** The caller of a commit, whose rights decide which resources the commit may name without writing them. */
export interface Caller {
	/** Passed to other deployments for their decisions. */
	readonly token: CallerToken;
	/**
	 * Whether the caller may name the target. Decided by name, so that the decision does not depend on
	 * whether the target exists; after `needsResource`, with the stored resource.
	 */
	decideReference(target: NamedTarget, stored?: Resource): Decision;
	/** Whether the caller may read a stored resource. */
	mayRead(resource: Resource): boolean;
}

/** The token of a caller, to be passed to another deployment. Printing it does not reveal the token. */
export class CallerToken {
	readonly #token: string | undefined;

	constructor(token: string | undefined) {
		this.#token = token;
	}

	/** The token itself: for requests only, never for logs, errors or storage. */
	reveal(): string | undefined {
		return this.#token;
	}

	toString(): string {
		return "[token]";
	}

	toJSON(): string {
		return "[token]";
	}

	/** For `node:util`'s `inspect`. */
	[Symbol.for("nodejs.util.inspect.custom")](): string {
		return "[token]";
	}
}

/** Whether a resource of tenancy `target` is in another namespace or partition than a resource of tenancy `from`. */
export function isCrossTenancy(target: TenancyLike, from: TenancyLike): boolean {
	return (
		isOtherUnit(target.partition, from.partition) || isOtherUnit(target.namespace, from.namespace)
	);
}

/** A target without such a unit can be named from anywhere. */
function isOtherUnit(target: string | undefined, from: string | undefined): boolean {
	return Boolean(target) && target !== from;
}
