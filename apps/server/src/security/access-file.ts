import type { Policy, PolicyRule } from "@plinth/resource-service";
import { z } from "zod";
import { type LocatedYaml, parseYaml } from "../configuration/located-yaml.ts";

/** The rights of a token, which is known by its hash. */
export interface TokenGrant {
	/** The SHA-256 of the token, in hexadecimal. */
	readonly hash: string;
	readonly policy: Policy;
	/** When it expires, in milliseconds since the epoch; if absent, it does not expire. */
	readonly expiresMs?: number;
}

/** The rights of JWTs that have the value in the claim. */
export interface ClaimGrant {
	readonly claim: string;
	readonly value: string;
	readonly rules: readonly PolicyRule[];
}

/** The contents of an access file. */
export interface AccessRules {
	readonly tokens: readonly TokenGrant[];
	readonly claims: readonly ClaimGrant[];
}

const word = z.string().min(1);

const rule = z.strictObject({
	operations: z.array(word).min(1),
	type: word.optional(),
	partition: word.optional(),
	namespace: word.optional(),
	namePrefix: word.optional(),
});

const accessFile = z.strictObject({
	policies: z.record(word, z.array(rule)),
	tokens: z
		.array(
			z.strictObject({
				subject: word,
				sha256: z.string().regex(/^[0-9a-f]{64}$/, "must be 64 hexadecimal digits in lower case"),
				policies: z.array(word),
				expires: z.iso.datetime({ offset: true }).optional(),
			}),
		)
		.default([]),
	claims: z
		.array(z.strictObject({ claim: word, value: word, policies: z.array(word) }))
		.default([]),
});

/**
 * Reads the content of an access file:
 *
 * ```yaml
 * policies:
 *   reader:
 *     - operations: [operator:read]
 *       type: demo.*          # and partition, namespace, namePrefix; absent keys match everything
 * tokens:
 *   - subject: alice          # for audit, limits and messages
 *     sha256: 2bd8…           # as plinth-server new-token prints it
 *     policies: [reader]
 *     expires: 2030-01-01T00:00:00Z
 * claims:                     # the rights of JWTs whose claim is or contains the value
 *   - claim: groups
 *     value: staff
 *     policies: [reader]
 * ```
 *
 * @param file the name of the file, for messages.
 * @throws FileError that names the problem and its line, without hashes.
 */
export function parseAccessFile(file: string, text: string): AccessRules {
	const yaml = parseYaml(file, text);
	const parsed = accessFile.safeParse(yaml.value ?? {}, { error: missing });
	if (!parsed.success) {
		const [issue] = parsed.error.issues;
		const path = issue?.path ?? [];
		const unknown = issue?.code === "unrecognized_keys" ? issue.keys.slice(0, 1) : [];
		const name = path.length === 0 ? "the file" : path.join(".");
		throw yaml.errorAt([...path, ...unknown], `${name}: ${issue?.message ?? "is malformed"}`);
	}
	const { policies, tokens, claims } = parsed.data;
	const rulesOf = (names: readonly string[], path: readonly PropertyKey[]) =>
		names.flatMap((name, index) => {
			const rules = Object.hasOwn(policies, name) ? policies[name] : undefined;
			if (rules === undefined) {
				throw yaml.errorAt([...path, "policies", index], `there is no policy named ${name}`);
			}
			return rules.map(withoutUndefined);
		});
	checkHashes(yaml, tokens);
	return {
		tokens: tokens.map(({ subject, sha256, policies: names, expires }, index) => ({
			hash: sha256,
			policy: { subject, rules: rulesOf(names, ["tokens", index]) },
			...(expires !== undefined && { expiresMs: Date.parse(expires) }),
		})),
		claims: claims.map(({ claim, value, policies: names }, index) => ({
			claim,
			value,
			rules: rulesOf(names, ["claims", index]),
		})),
	};
}

/** The message of a problem that the library would describe by its types. */
function missing({ code, input }: { readonly code: string; readonly input?: unknown }) {
	return code === "invalid_type" && input === undefined ? "is required" : undefined;
}

function checkHashes(yaml: LocatedYaml, tokens: readonly { readonly sha256: string }[]): void {
	const seen = new Set<string>();
	for (const [index, { sha256 }] of tokens.entries()) {
		if (seen.has(sha256)) {
			throw yaml.errorAt(
				["tokens", index, "sha256"],
				"this token already has an entry: use one entry with all its policies",
			);
		}
		seen.add(sha256);
	}
}

function withoutUndefined(parsed: z.infer<typeof rule>): PolicyRule {
	const { operations, type, partition, namespace, namePrefix } = parsed;
	return {
		operations,
		...(type !== undefined && { type }),
		...(partition !== undefined && { partition }),
		...(namespace !== undefined && { namespace }),
		...(namePrefix !== undefined && { namePrefix }),
	};
}
