import { createHash } from "node:crypto";
import type { BackupResponse } from "@plinth/proto/gen/plinth/backup/v1/backup_service_pb.js";
import { exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";

/** The content of a backup. */
export interface ReceivedBackup {
	readonly resources: bigint;
	readonly version: string;
}

/** The receiver of a backup. */
export interface BackupReceiver {
	/** Writes the next bytes. The stream waits for it. */
	write(bytes: Uint8Array): Promise<void>;
	/** Called with the progress: first in resources, then in bytes. */
	progress(done: bigint, of: bigint, unit: "resources" | "bytes"): void;
}

/**
 * Receives a backup from a stream. When it resolves, the backup is complete and its checksum is correct.
 *
 * @throws Failure if it is not complete; any error of the stream or the receiver.
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
			throw incomplete("data after its checksum");
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
		throw incomplete("its end is missing");
	}
	if (size !== taken.sizeBytes || !hash.digest().equals(checksum)) {
		throw incomplete("its checksum is wrong");
	}
	return taken;
}

function incomplete(why: string): Failure {
	return new Failure(
		exitCodes.unreachable,
		`the received backup is damaged (${why}) and was discarded: try again`,
	);
}
