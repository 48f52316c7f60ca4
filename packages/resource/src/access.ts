import type { TypeLike } from "./gvk.ts";
import type { TenancyLike } from "./scope.ts";
import { refusePromise } from "./synchronous.ts";

/** The decision of an authorization hook. */
export type Decision =
	| { readonly kind: "allowed" }
	/** `message` is returned to the caller. */
	| { readonly kind: "denied"; readonly message: string }
	/** The hook can't decide by the ID alone: call it again with the resource. Reads only. */
	| { readonly kind: "needs-resource" };

/** The decision that allows. */
export const allowed: Decision = { kind: "allowed" };

/** The decision of a hook that needs the resource in order to decide. */
export const needsResource: Decision = { kind: "needs-resource" };

/** The decision that denies, with the message for the caller. */
export function denied(message: string): Decision {
	return { kind: "denied", message };
}

/**
 * The message of a denial; `undefined` for other decisions. A value that is not a decision, which untyped
 * code may return, allows nothing.
 *
 * @throws TypeError if the value is not a decision.
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

/** The target of an operation. For lists, it has no name. */
export interface AccessTarget {
	readonly type: TypeLike;
	readonly tenancy?: TenancyLike | undefined;
	readonly name?: string | undefined;
}

/** The rights of the bearer of a token, valid until `ended` aborts. */
export interface Access {
	/** The identity of the bearer, for audit. Never the token. */
	readonly subject: string;
	/** Whether the bearer may do `operation` (as `operator:read`) on the target. */
	check(operation: string, target: AccessTarget): Decision;
	/**
	 * The decision for all names of the target's type and tenancy, if it is the same for all: lists and
	 * watches then call it once per tenancy. If it is absent or returns `undefined`, each name is decided
	 * individually.
	 */
	checkEveryName?(operation: string, target: AccessTarget): Decision | undefined;
	/**
	 * Whether the caller is the deployment itself, whose references are authorized neither here nor at other
	 * deployments: they are allowed. False by default.
	 */
	readonly isDeployment?: boolean;
	/**
	 * Aborts when the token has expired or its rights have changed: call the authorizer again. Watches end with
	 * Unauthenticated, or with the reason of the signal if that is a ConnectError.
	 */
	readonly ended?: AbortSignal;
}

/** Resolves tokens to the rights of their bearers. */
export interface Authorizer {
	/** The access of all callers, if tokens are not checked. */
	readonly tokenless?: Access;
	/**
	 * The access of the bearer of the token.
	 *
	 * @throws ConnectError Unauthenticated if the token is missing, unknown or expired.
	 */
	authenticate(token: string | undefined): Access | Promise<Access>;
	/**
	 * When the access of a token that was accepted ends by itself, in milliseconds since the epoch. `undefined` if it does
	 * not, or if the token is not known. Absent if no token expires.
	 */
	expiryOf?(token: string): number | undefined;
}

/** The right to read resources of types without authorize hooks. */
export const operatorRead = "operator:read";

/** The right to write resources of types without authorize hooks. */
export const operatorWrite = "operator:write";

/**
 * The right, in addition to the right to read it, to name a resource of another namespace or partition as
 * the target of a reference or as an owner, for types without a reference hook.
 */
export const operatorReference = "operator:reference";

/**
 * The right to read, mark or delete a resource that its type can't decode, if the type's authorize hook
 * decides by the data. Included in `*`.
 */
export const operatorUndecodable = "operator:undecodable";
