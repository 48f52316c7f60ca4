import { crc32 } from "node:zlib";

/** What a checksum of a row covers. */
export interface RowContent {
	readonly key: string;
	readonly revision: number;
	readonly body: Uint8Array;
}

/** The checksum of a row: CRC-32 of all that it holds. */
export function rowChecksum({ key, revision, body }: RowContent): number {
	return crc32(body, crc32(`${key}\0${revision}\0`));
}

/** What the head row says of the whole storage. */
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

/** The digest with the checksums of rows that came, and without those of rows that went. */
export function addToDigest(digest: number, came: number, went: number): number {
	return (digest + came - went + digestRange) % digestRange;
}
