/**
 * Into how many shards the keys of all sharded controllers are divided: the most servers that can share their work.
 * All servers of a cluster must use the same number.
 */
export const shardCount = 16;

const offsetBasis = 0x811c9dc5;
const prime = 0x01000193;

/**
 * A hash of a text, as an unsigned number of 32 bits: FNV-1a of its UTF-16 code units, with the finalizer of
 * MurmurHash3, since the low bits of FNV alone depend on few bits of the text.
 */
export function hashText(text: string): number {
	let hash = offsetBasis;
	for (let at = 0; at < text.length; at += 1) {
		hash = Math.imul(hash ^ text.charCodeAt(at), prime);
	}
	hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
	hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
	return (hash ^ (hash >>> 16)) >>> 0;
}

/** The shard of a key, from 0. It is the same on all servers and in all versions. */
export function shardOf(key: string): number {
	return hashText(key) % shardCount;
}
