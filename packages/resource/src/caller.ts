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
	readonly isElsewhere: boolean;
}

/** On whose behalf a commit is made. It decides on resources that the commit names and does not write. */
export interface Caller {
	/** What other deployments decide by. */
	readonly token: CallerToken;
	/**
	 * May the caller name the target? Decided by name, so that it does not depend on whether there is one;
	 * after `needsResource` with what is stored.
	 */
	decideReference(target: NamedTarget, stored?: Resource): Decision;
	/** Whether the caller may read a resource that is stored. */
	mayRead(resource: Resource): boolean;
}

/** The token of a caller, on its way to another deployment. It prints as nothing but what it is. */
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

/** Whether a resource of the one tenancy is in another namespace or partition than one of the other. */
export function isElsewhere(target: TenancyLike, from: TenancyLike): boolean {
	return (
		isOtherUnit(target.partition, from.partition) || isOtherUnit(target.namespace, from.namespace)
	);
}

/** A target that is in no such unit can be named from anywhere. */
function isOtherUnit(target: string | undefined, from: string | undefined): boolean {
	return Boolean(target) && target !== from;
}
