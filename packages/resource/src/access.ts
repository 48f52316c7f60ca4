import type { TypeLike } from "./gvk.ts";
import type { TenancyLike } from "./scope.ts";
import { refusePromise } from "./synchronous.ts";

/** The answer to "may they?". */
export type Decision =
	| { readonly kind: "allowed" }
	/** `message` goes to the caller. */
	| { readonly kind: "denied"; readonly message: string }
	/** The hook can't tell from the ID alone: ask again with the resource. Reads only. */
	| { readonly kind: "needs-resource" };

/** The decision that allows. */
export const allowed: Decision = { kind: "allowed" };

/** The decision that a hook takes when it must see the resource first. */
export const needsResource: Decision = { kind: "needs-resource" };

/** The decision that denies, with the message for the caller. */
export function denied(message: string): Decision {
	return { kind: "denied", message };
}

/**
 * The message of a decision that denies, or `undefined` for the others. A value that is no decision, as code
 * without types may return it, allows nothing.
 *
 * @throws TypeError where it is no decision.
 */
export function denialOf(decision: Decision): string | undefined {
	switch (decision.kind) {
		case "allowed":
		case "needs-resource":
			return undefined;
		case "denied":
			return decision.message;
		default:
			refusePromise(decision, "the check of an authorizer");
			throw new TypeError(`an authorizer returned ${String(decision)} instead of a decision`);
	}
}

/** What an operation is on. A list has no name. */
export interface AccessTarget {
	readonly type: TypeLike;
	readonly tenancy?: TenancyLike | undefined;
	readonly name?: string | undefined;
}

/** What the bearer of a token may do, for as long as `ended` has not aborted. */
export interface Access {
	/** Who it is, for audit. Never the token. */
	readonly subject: string;
	/** Whether the bearer may do `operation` (as `operator:read`) on the target. */
	check(operation: string, target: AccessTarget): Decision;
	/**
	 * The decision for each name of the target's type and tenancy, where it is one and the same:
	 * lists and watches ask it once per tenancy. Absent or `undefined`: they ask for each name.
	 */
	checkEveryName?(operation: string, target: AccessTarget): Decision | undefined;
	/**
	 * Whether the caller is the deployment itself: what it references is not decided on, here or at other
	 * deployments. Absent: no.
	 */
	readonly isDeployment?: boolean;
	/** Aborts when the token has expired or what it allows has changed: ask the authorizer again. */
	readonly ended?: AbortSignal;
}

/** Turns tokens into what their bearers may do. */
export interface Authorizer {
	/** The access of everyone, where tokens are not looked at. */
	readonly tokenless?: Access;
	/**
	 * What the bearer of the token may do.
	 *
	 * @throws ConnectError Unauthenticated where the token is missing, unknown or expired.
	 */
	authenticate(token: string | undefined): Access | Promise<Access>;
}

/** What it takes to read resources of a type without hooks of its own. */
export const operatorRead = "operator:read";

/** What it takes to write resources of a type without hooks of its own. */
export const operatorWrite = "operator:write";

/**
 * What it takes, besides the right to read it, to name a resource of another namespace or partition as the
 * target of a reference or as an owner, for types without a hook of their own.
 */
export const operatorReference = "operator:reference";

/**
 * What it takes to read, mark or delete a resource that its type can't decode, where the type's authorize
 * hook decides by the data. Part of `*`.
 */
export const operatorUndecodable = "operator:undecodable";
