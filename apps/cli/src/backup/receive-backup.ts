import { createHash } from "node:crypto";
import type { BackupResponse } from "@plinth/proto/gen/plinth/backup/v1/backup_service_pb.js";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";

/** What a backup holds. */
export interface ReceivedBackup {
	readonly resources: bigint;
	readonly version: string;
}

/** What is done with a backup that comes in. */
export interface BackupReceiver {
	/** Takes the next bytes. The stream waits for it. */
	write(bytes: Uint8Array): Promise<void>;
	/** Hears how far it is: first in resources, then in bytes. */
	progress(done: bigint, of: bigint, unit: "resources" | "bytes"): void;
}

/**
 * Takes a backup from a stream. When it resolves, all of it was received and its checksum is right.
 *
 * @throws Failure where it is not whole; what the stream throws; what the receiver throws.
 */
export async function receiveBackup(
	stream: AsyncIterable<BackupResponse>,
	receiver: BackupReceiver,
): Promise<ReceivedBackup> {
	const hash = createHash("sha256");
	let size = 0n;
	let taken: (ReceivedBackup & { readonly sizeBytes: bigint }) | undefined;
	let checksum: Uint8Array | undefined;
	for await (const { part } of stream) {
		if (checksum !== undefined) {
			throw broken("there was more after its checksum");
		}
		switch (part.case) {
			case "progress":
				receiver.progress(part.value.resources, part.value.of, "resources");
				break;
			case "taken":
				taken = part.value;
				break;
			case "chunk":
				hash.update(part.value);
				size += BigInt(part.value.byteLength);
				await receiver.write(part.value);
				receiver.progress(size, taken?.sizeBytes ?? size, "bytes");
				break;
			case "checksum":
				checksum = part.value.sha256;
				break;
			default:
		}
	}
	if (taken === undefined || checksum === undefined) {
		throw broken("its end is missing");
	}
	if (size !== taken.sizeBytes || !hash.digest().equals(checksum)) {
		throw broken("its checksum is wrong");
	}
	return taken;
}

function broken(why: string): Failure {
	return new Failure(
		exitCodes.unreachable,
		`the backup did not arrive whole (${why}), and nothing was kept of it: try again`,
	);
}
