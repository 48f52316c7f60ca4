import { crc32 } from "node:zlib";

/** The content of a row that its checksum covers. */
export interface RowContent {
	readonly key: string;
	readonly revision: number;
	readonly body: Uint8Array;
}

/** The checksum of a row: CRC-32 of its content. */
export function rowChecksum({ key, revision, body }: RowContent): number {
	return crc32(body, crc32(`${key}\0${revision}\0`));
}

/** The head row, which summarizes the whole storage. */
export interface Head {
	/** The newest revision. */
	readonly revision: number;
	/** The number of resources. */
	readonly resources: number;
	/** The sum of the checksums of all rows, cut to 48 bits. */
	readonly digest: number;
}

/** The checksum of the head row. */
export function headChecksum({ revision, resources, digest }: Head): number {
	return crc32(`${revision}\0${resources}\0${digest}`);
}

const digestRange = 2 ** 48;

/** Adds the checksum of a new row to the digest, and removes that of a deleted one. */
export function addToDigest(digest: number, added: number, removed: number): number {
	return (digest + added - removed + digestRange) % digestRange;
}
