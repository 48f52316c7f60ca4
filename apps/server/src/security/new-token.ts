import { randomBytes } from "node:crypto";
import { tokenHash } from "@plinth/resource-service";

/** Creates a random token, with the hash that identifies it in the access file. */
export function newToken(): { readonly token: string; readonly sha256: string } {
	const token = `plinth_${randomBytes(32).toString("base64url")}`;
	return { token, sha256: tokenHash(token) };
}
