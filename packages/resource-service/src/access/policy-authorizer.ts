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
} from "@plinth/resource";

/** One thing that a policy allows. Absent parts allow all. */
export interface PolicyRule {
	/** As `operator:read`; `*` for all. */
	readonly operations: readonly string[];
	/** As `demo.v2.Artist`; a trailing `*` stands for any ending, as in `demo.*`. */
	readonly type?: string;
	/** A partition's name. Resources without one are out of it. */
	readonly partition?: string;
	/** A namespace's name. Resources without one are out of it. */
	readonly namespace?: string;
	/** What names of resources begin with. */
	readonly namePrefix?: string;
}

/** What the bearer of a token may do: what any of the rules allows, and nothing else. */
export interface Policy {
	/** Who it is, for audit and messages. */
	readonly subject: string;
	readonly rules: readonly PolicyRule[];
}

interface Grant {
	readonly policy: Policy;
	readonly access: Access;
	readonly end: AbortController;
}

/**
 * Tokens and their policies, in memory. It holds hashes of tokens, not tokens. What a policy allows
 * is decided by operation, type, tenancy and name prefix.
 */
export class PolicyAuthorizer implements Authorizer {
	readonly #grants = new Map<string, Grant>();

	/** Gives a token a policy. One that it had before ends, and watches under it with it. */
	grant(token: string, policy: Policy): void {
		this.#grant(tokenHash(token), policy);
	}

	/** Takes a token's policy away, and ends watches under it. */
	revoke(token: string): void {
		this.revokeHashed(tokenHash(token));
	}

	/** As `revoke`, by the token's hash. */
	revokeHashed(hash: string): void {
		this.#grants.get(hash)?.end.abort();
		this.#grants.delete(hash);
	}

	/**
	 * Makes these all the policies that there are, by the hashes of their tokens. What is the same as
	 * before goes on; watches under what is gone or another end.
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

	/** @throws ConnectError Unauthenticated where the token is missing or unknown. */
	authenticate(token: string | undefined): Access {
		if (token === undefined) {
			throw new ConnectError(
				"a token is required: authorization: Bearer <token>",
				Code.Unauthenticated,
			);
		}
		const grant = this.#grants.get(tokenHash(token));
		if (grant === undefined) {
			throw new ConnectError("the token is not known", Code.Unauthenticated);
		}
		return grant.access;
	}
}

/**
 * The SHA-256 of a token in hexadecimal. Comparing hashes takes as long for a token that is nearly
 * right as for any other.
 */
export function tokenHash(token: string): string {
	return hash("sha256", token);
}

/** What the policy allows, until `ended` aborts. */
export function policyAccess(policy: Policy, ended: AbortSignal): Access {
	return {
		subject: policy.subject,
		ended,
		check: (operation, target) => {
			const rules = policy.rules.filter((rule) => appliesTo(rule, operation, target));
			const { name } = target;
			// A list or a watch is allowed where any name may be: what it shows is filtered.
			const good =
				name === undefined
					? rules.length > 0
					: rules.some((rule) => name.startsWith(rule.namePrefix ?? ""));
			return good ? allowed : refusal(policy, operation, target);
		},
		checkEveryName: (operation, target) => {
			const rules = policy.rules.filter((rule) => appliesTo(rule, operation, target));
			if (rules.some((rule) => !rule.namePrefix)) {
				return allowed;
			}
			return rules.length === 0 ? refusal(policy, operation, target) : undefined;
		},
	};
}

function refusal(policy: Policy, operation: string, target: AccessTarget): Decision {
	return denied(`${policy.subject} lacks ${operation} on ${gvkKey(target.type)}`);
}

/** Whether a rule allows the operation on some names of the target's type and tenancy. */
function appliesTo(rule: PolicyRule, operation: string, target: AccessTarget): boolean {
	return (
		rule.operations.some((one) => one === "*" || one === operation) &&
		typeMatches(rule.type, gvkKey(target.type)) &&
		unitMatches(rule.partition, target, "partition") &&
		unitMatches(rule.namespace, target, "namespace")
	);
}

function typeMatches(pattern: string | undefined, type: string): boolean {
	if (pattern === undefined) {
		return true;
	}
	return pattern.endsWith("*") ? type.startsWith(pattern.slice(0, -1)) : pattern === type;
}

function unitMatches(
	unit: string | undefined,
	{ tenancy, name }: AccessTarget,
	which: "partition" | "namespace",
): boolean {
	const asked = tenancy?.[which] ?? "";
	// A list over all tenancies is about this one too.
	return unit === undefined || unit === asked || (name === undefined && asked === "*");
}
