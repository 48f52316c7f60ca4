import { Code, ConnectError } from "@connectrpc/connect";
import { BackupService } from "@plinth/proto/gen/plinth/backup/v1/backup_service_pb.js";
import { callFailure } from "../api/call-failure.ts";
import type { ServerSession } from "../api/server-session.ts";
import { PartialFile } from "../backup/partial-file.ts";
import { type BackupReceiver, receiveBackup } from "../backup/receive-backup.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { Failure } from "../failure.ts";
import type { Io } from "../io.ts";
import type { Session } from "../session.ts";

/** Writes a backup of the storage of a running server to a local file. */
export async function backup(session: Session, path: string): Promise<ExitCode> {
	await using file = await PartialFile.create(path);
	const { resources, version } = await receive(await session.server(), file);
	await file.publish();
	session.io.out(`${path} contains ${resources} resources at version ${version}\n`);
	return exitCodes.ok;
}

async function receive({ io, connection, settings }: ServerSession, file: PartialFile) {
	try {
		// A backup may take any time, so it has no timeout. Pings detect a server that is gone.
		const backups = connection.client(BackupService);
		const stream = backups.backup({}, { signal: io.signal, timeoutMs: 0 });
		return await receiveBackup(stream, {
			write: (bytes) => file.write(bytes),
			progress: progressLines(io),
		});
	} catch (failure) {
		// Here, this code does not mean a conflict, as it does for writes.
		throw failure instanceof ConnectError && failure.code === Code.FailedPrecondition
			? new Failure(exitCodes.failed, failure.rawMessage, { cause: failure })
			: callFailure(failure, settings.endpoint.server);
	}
}

const everyMs = 2_000;

/** Prints the progress at intervals. */
function progressLines({ clock, err }: Io): BackupReceiver["progress"] {
	let nextMs = clock.monotonic() + everyMs;
	return (done, of, unit) => {
		if (clock.monotonic() >= nextMs) {
			nextMs = clock.monotonic() + everyMs;
			const what = unit === "resources" ? "resources copied" : "bytes received";
			err(`plinth: ${done} of ${of} ${what}\n`);
		}
	};
}
