import { randomBytes } from "node:crypto";
import { tokenHash } from "@plinth/resource-service";

/** A token that nobody can guess, and what the access file knows it by. */
export function newToken(): { readonly token: string; readonly sha256: string } {
	const token = `plinth_${randomBytes(32).toString("base64url")}`;
	return { token, sha256: tokenHash(token) };
}
