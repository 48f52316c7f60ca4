import { isUlid } from "@plinth/resource";
import { checkAddress, checkCa } from "../types.ts";

/** What a token tells the cluster that uses it. */
export interface PeeringToken {
	/** The address of the cluster that has made the token. */
	readonly address: string;
	/** The certificates that the address is checked against, in PEM; empty for those that the system trusts. */
	readonly ca: string;
	/** The id of the peering in the cluster that has made the token. */
	readonly peeringId: string;
	/** It can be used once, within an hour. */
	readonly secret: string;
}

const prefix = "plinth-peering-1.";

/** The longest token that is read: it has certificates of up to 64 KiB. In characters. */
const maxLength = 96 * 1024;

/** The token as one word. */
export function encodeToken(token: PeeringToken): string {
	return `${prefix}${Buffer.from(JSON.stringify(token)).toString("base64url")}`;
}

/**
 * The token of a word.
 *
 * @throws Error that says what is wrong with it, without the secret.
 */
export function decodeToken(text: string): PeeringToken {
	if (!text.startsWith(prefix) || text.length > maxLength) {
		throw new Error(
			`token invalid: it must start with ${prefix}: create one in the other cluster with plinth peering token NAME`,
		);
	}
	let parsed: unknown;
	try {
		parsed = JSON.parse(Buffer.from(text.slice(prefix.length), "base64url").toString());
	} catch {
		throw new Error("token invalid: it is cut off or changed: copy it as a whole");
	}
	if (!isToken(parsed) || !isUlid(parsed.peeringId) || parsed.secret.length > 128) {
		throw new Error("token invalid: it is cut off or changed: copy it as a whole");
	}
	checkAddress(parsed.address, "token invalid: its address");
	checkCa(parsed.ca, "token invalid: its ca");
	return parsed;
}

function isToken(value: unknown): value is PeeringToken {
	return (
		typeof value === "object" &&
		value !== null &&
		["address", "ca", "peeringId", "secret"].every(
			(key) => key in value && typeof Reflect.get(value, key) === "string",
		)
	);
}
