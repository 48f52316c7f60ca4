import { hash } from "node:crypto";

/** The hash of a file's content, to notice whether it has changed. Not for security. */
export function contentHash(content: string | Uint8Array): string {
	return hash("sha1", content);
}
