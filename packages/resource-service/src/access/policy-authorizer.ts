import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { Code, ConnectError } from "@connectrpc/connect";
import {
	type Access,
	type AccessTarget,
	type Authorizer,
	allowed,
	type Decision,
	denied,
	gvkKey,
	type TypeLike,
} from "@plinth/resource";

/** One permission of a policy. An absent field matches everything. */
export interface PolicyRule {
	/** Operations such as `operator:read`; `*` for all. */
	readonly operations: readonly string[];
	/** A type such as `demo.v2.Artist`. A trailing `*` matches any suffix, as in `demo.*`. */
	readonly type?: string;
	/** The name of a partition. It does not match resources without one. */
	readonly partition?: string;
	/** The name of a namespace. It does not match resources without one. */
	readonly namespace?: string;
	/** A prefix of resource names. */
	readonly namePrefix?: string;
}

/** The rights of the bearer of a token: everything that any of the rules allows, and nothing else. */
export interface Policy {
	/** The bearer's name in audit records and messages. */
	readonly subject: string;
	readonly rules: readonly PolicyRule[];
}

interface Grant {
	readonly policy: Policy;
	readonly access: Access;
	readonly end: AbortController;
}

/** How many accepted tokens are remembered. */
const rememberedTokens = 1_024;

/**
 * Tokens and their policies, in memory. It is given hashes of tokens, not tokens. A policy grants access by
 * operation, type, tenancy and name prefix.
 */
export class PolicyAuthorizer implements Authorizer {
	readonly #grants = new Map<string, Grant>();
	/**
	 * The grants of tokens that were accepted, so that they are not hashed for each call. A look-up compares tokens only if
	 * their hashes in the map, which depend on a secret of the process, are equal: its timing reveals nothing.
	 */
	readonly #accepted = new Map<string, Grant>();

	/** Grants a policy to a token. It replaces the token's previous policy and ends watches under that one. */
	grant(token: string, policy: Policy): void {
		this.#grant(tokenHash(token), policy);
	}

	/** Revokes a token's policy, and ends watches under it. */
	revoke(token: string): void {
		this.revokeHashed(tokenHash(token));
	}

	/** Like `revoke`, by the token's hash. */
	revokeHashed(hash: string): void {
		this.#grants.get(hash)?.end.abort();
		this.#grants.delete(hash);
		this.#accepted.clear();
	}

	/**
	 * Replaces all policies, by the hashes of their tokens. Unchanged policies stay in effect; watches under
	 * removed or changed ones end.
	 */
	replaceAll(policies: ReadonlyMap<string, Policy>): void {
		for (const hash of [...this.#grants.keys()]) {
			if (!policies.has(hash)) {
				this.revokeHashed(hash);
			}
		}
		for (const [hash, policy] of policies) {
			if (!isDeepStrictEqual(this.#grants.get(hash)?.policy, policy)) {
				this.#grant(hash, policy);
			}
		}
	}

	#grant(hash: string, policy: Policy): void {
		this.revokeHashed(hash);
		const end = new AbortController();
		this.#grants.set(hash, { policy, access: policyAccess(policy, end.signal), end });
	}

	/** @throws ConnectError Unauthenticated if the token is missing or unknown. */
	authenticate(token: string | undefined): Access {
		if (token === undefined) {
			throw new ConnectError(
				"a token is required: authorization: Bearer <token>",
				Code.Unauthenticated,
			);
		}
		const accepted = this.#accepted.get(token);
		if (accepted !== undefined) {
			return accepted.access;
		}
		const grant = this.#grants.get(tokenHash(token));
		if (grant === undefined) {
			throw new ConnectError("the token is not known", Code.Unauthenticated);
		}
		if (this.#accepted.size >= rememberedTokens) {
			this.#accepted.clear();
		}
		this.#accepted.set(token, grant);
		return grant.access;
	}
}

/**
 * The SHA-256 of a token in hexadecimal. Comparing hashes reveals nothing about the token by its timing.
 */
export function tokenHash(token: string): string {
	return hash("sha256", token);
}

/** The policies of accesses that one describes. */
const policies = new WeakMap<Access, Policy>();

/** The policy that says all of what an access allows; `undefined` if none does. */
export function policyOf(access: Access): Policy | undefined {
	return policies.get(access);
}

/** Whether a policy allows the operation on all resources of a type, whatever their tenancies and names. */
export function allowsEverywhere({ rules }: Policy, operation: string, type: TypeLike): boolean {
	return rules.some(
		({ partition, namespace, namePrefix, ...rule }) =>
			partition === undefined &&
			namespace === undefined &&
			!namePrefix &&
			appliesTo(rule, operation, { type }),
	);
}

/** Remembers the policy that says all of what an access allows. */
export function describedBy(policy: Policy, access: Access): Access {
	policies.set(access, policy);
	return access;
}

/** The access that a policy grants, until `ended` aborts. */
export function policyAccess(policy: Policy, ended: AbortSignal): Access {
	return describedBy(policy, {
		subject: policy.subject,
		ended,
		check: (operation, target) => {
			const { name } = target;
			const isAllowed = policy.rules.some(
				(rule) =>
					appliesTo(rule, operation, target) &&
					// A list or a watch is allowed if any name is: its results are filtered.
					(name === undefined || name.startsWith(rule.namePrefix ?? "")),
			);
			return isAllowed ? allowed : refusal(policy, operation, target);
		},
		checkEveryName: (operation, target) => {
			const rules = policy.rules.filter((rule) => appliesTo(rule, operation, target));
			if (rules.some((rule) => !rule.namePrefix)) {
				return allowed;
			}
			return rules.length === 0 ? refusal(policy, operation, target) : undefined;
		},
	});
}

function refusal(policy: Policy, operation: string, target: AccessTarget): Decision {
	return denied(`${policy.subject} lacks ${operation} on ${gvkKey(target.type)}`);
}

/** Whether a rule allows the operation on some names of the target's type and tenancy. */
function appliesTo(rule: PolicyRule, operation: string, target: AccessTarget): boolean {
	return (
		rule.operations.some((one) => one === "*" || one === operation) &&
		typeMatches(rule.type, target.type) &&
		unitMatches(rule.partition, target, "partition") &&
		unitMatches(rule.namespace, target, "namespace")
	);
}

function typeMatches(pattern: string | undefined, named: TypeLike): boolean {
	if (pattern === undefined) {
		return true;
	}
	const type = gvkKey(named);
	return pattern.endsWith("*") ? type.startsWith(pattern.slice(0, -1)) : pattern === type;
}

function unitMatches(
	unit: string | undefined,
	{ tenancy, name }: AccessTarget,
	which: "partition" | "namespace",
): boolean {
	const requested = tenancy?.[which] ?? "";
	// A list over all tenancies includes this one.
	return unit === undefined || unit === requested || (name === undefined && requested === "*");
}
